/** Where the changes of two sandboxes of one project differ. */
import type { Change } from './change.ts'
import { isSame } from './entry.ts'

export interface Comparison {
  readonly onlyFirst: readonly Change[]
  readonly onlySecond: readonly Change[]
  /** What accept would apply is the same. */
  readonly same: readonly Change[]
  readonly different: readonly Pair[]
}

/** The same path in both. */
export type Pair = readonly [first: Change, second: Change]

export function compareLayers(first: readonly Change[], second: readonly Change[]): Comparison {
  const others = new Map(second.map(change => [change.path, change]))
  const [onlyFirst, same, different]: [Change[], Change[], Pair[]] = [[], [], []]
  for (const change of first) {
    const other = others.get(change.path)
    others.delete(change.path)
    if (other === undefined) onlyFirst.push(change)
    else if (isAlike(change, other)) same.push(change)
    else different.push([change, other])
  }
  return { onlyFirst, onlySecond: [...others.values()], same, different }
}

/** What pen cannot read is never alike. */
function isAlike(one: Change, other: Change): boolean {
  if (one.refused !== undefined || other.refused !== undefined) return false
  return one.after === undefined || other.after === undefined
    ? one.after === other.after
    : isSame(one.after, other.after)
}

/** From the version of the first sandbox to that of the second. */
export const between = ([{ path, after: before }, { after }]: Pair): Change => ({
  path,
  kind: 'changed',
  before,
  after,
})

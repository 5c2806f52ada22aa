/** How the layers of two sandboxes differ, as a list for the user. All names of files are hostile. */
import type { Change } from '../../review/change.ts'
import type { Comparison, Pair } from '../../review/compare-layers.ts'
import { foldGenerated } from '../../review/fold-generated.ts'
import { withName } from '../frame/sandbox-name.ts'
import type { Paint } from './colour.ts'
import { changeLine, detailsOf, KIND_NAMES, showPath, treeLine } from './review-list.ts'

/** Undefined: the sandbox without a name. */
export type SandboxName = string | undefined

export const sandboxWords = (name: SandboxName): string => name ?? 'the sandbox without a name'

export function comparisonLines(
  { onlyFirst, onlySecond, same, different }: Comparison,
  [first, second]: readonly [SandboxName, SandboxName],
  paint: Paint,
): string[] {
  const group = (title: string, changes: readonly Change[], name: SandboxName): string[] => {
    if (changes.length === 0) return []
    const { listed, trees } = foldGenerated(changes, [])
    return [
      paint('bold', title),
      ...listed.map(change => changeLine(change, undefined, paint)),
      ...trees.map(tree => withName(treeLine(tree), name)),
    ]
  }
  const pairLine = ([one, other]: Pair): string =>
    `  ${paint('yellow', showPath(one.path))}  (${sandboxWords(first)}: ${sideWords(one)}; ${sandboxWords(second)}: ${sideWords(other)})`
  return [
    ...group(`only in ${sandboxWords(first)}:`, onlyFirst, first),
    ...group(`only in ${sandboxWords(second)}:`, onlySecond, second),
    ...group('the same in both:', same, first),
    ...(different.length === 0 ? [] : [paint('bold', 'different:'), ...different.map(pairLine)]),
  ]
}

function sideWords({ kind, before, after, refused }: Change): string {
  const details = refused ?? detailsOf(kind, before, after)
  return details === '' ? KIND_NAMES[kind] : details
}

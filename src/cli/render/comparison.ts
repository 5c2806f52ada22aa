/** How the layers of two sandboxes differ, as a list for the user. All names of files are hostile. */
import type { Change } from '../../review/change.ts'
import type { Comparison, Pair } from '../../review/compare-layers.ts'
import { foldGenerated, type GeneratedTree } from '../../review/fold-generated.ts'
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
      ...trees.map(tree => treeLine(tree, { name })),
    ]
  }
  const { listed, trees } = foldPairs(different)
  const pairLine = ([one, other]: Pair): string =>
    `  ${paint('yellow', showPath(one.path))}  (${sandboxWords(first)}: ${sideWords(one)}; ${sandboxWords(second)}: ${sideWords(other)})`
  return [
    ...group(`only in ${sandboxWords(first)}:`, onlyFirst, first),
    ...group(`only in ${sandboxWords(second)}:`, onlySecond, second),
    ...group('the same in both:', same, first),
    ...(different.length === 0 ? [] : [paint('bold', 'different:'), ...listed.map(pairLine)]),
    ...trees.map(({ path, changes }) => `  ${showPath(path)}/  ${changes.length} different`),
  ]
}

/** Generated trees are one line each. A pair is listed when one of its sides needs the eyes of the user. */
export function foldPairs(pairs: readonly Pair[]): {
  readonly listed: readonly Pair[]
  readonly trees: readonly GeneratedTree[]
} {
  const folded = [0, 1].map(side =>
    foldGenerated(
      pairs.map(pair => pair[side as 0 | 1]),
      [],
    ),
  )
  const listed = new Set(folded.flatMap(fold => fold.listed.map(({ path }) => path)))
  const trees = (folded[0]?.trees ?? []).flatMap(({ path, changes }) => {
    const rest = changes.filter(change => !listed.has(change.path))
    return rest.length === 0 ? [] : { path, changes: rest }
  })
  return { listed: pairs.filter(([{ path }]) => listed.has(path)), trees }
}

function sideWords({ kind, before, after, refused }: Change): string {
  const details = refused ?? detailsOf(kind, before, after)
  return details === '' ? KIND_NAMES[kind] : details
}

/** One change as a unified difference. All of it is hostile. */
import { printable } from '../../base/printable.ts'
import { pathText } from '../../repository/sync/changed-paths.ts'
import type { Change } from '../../review/change.ts'
import type { Entry } from '../../review/entry.ts'
import type { OpenDirectories } from '../../review/open-directories.ts'
import { readSides } from '../../review/read-sides.ts'
import type { Paint } from './colour.ts'
import { showPath } from './review-list.ts'
import { showSize } from './table.ts'
import { unifiedDifference } from './unified-difference.ts'

/** Empty for a directory, and where only the mode differs. */
export function reviewDifference(change: Change, directories: OpenDirectories, paint: Paint): string[] {
  const lines = bodyOf(change, directories, paint)
  if (lines.length === 0) return []
  const { path, before, after } = change
  const side = (sign: string, letter: string, entry: Entry | undefined): string =>
    paint('bold', `${sign} ${has(entry) ? `${letter}/${showPath(path)}` : '/dev/null'}`)
  return [side('---', 'a', before), side('+++', 'b', after), ...lines]
}

const has = (entry: Entry | undefined): boolean => entry?.type === 'file' || entry?.type === 'link'

function bodyOf(change: Change, directories: OpenDirectories, paint: Paint): string[] {
  const { kind, before, after } = change
  if (kind === 'mode' || (!has(before) && !has(after))) return []
  if (before?.type === 'link' || after?.type === 'link')
    return [before, after].flatMap((entry, i) =>
      entry?.type === 'link' && (i === 1 || entry.content !== undefined)
        ? [paint(i === 0 ? 'red' : 'green', `${i === 0 ? '-' : '+'}link to ${target(entry)}`)]
        : [],
    )
  const sides = readSides(change, directories)
  if (sides === undefined) return [`binary, or too large to show: ${sizes(before, after)}`]
  return unifiedDifference(sides.before?.toString() ?? '', sides.after?.toString() ?? '', paint)
}

const target = ({ content = '' }: Entry): string => printable(pathText(content), 4096)

const sizes = (before: Entry | undefined, after: Entry | undefined): string =>
  [before, after].map(entry => (entry === undefined ? 'none' : showSize(entry.size))).join(' → ')

/** How many lines were added and removed. Undefined for what is no text. */
export function countLines(
  change: Change,
  directories: OpenDirectories,
): { readonly added: number; readonly removed: number } | undefined {
  if (!has(change.before) && !has(change.after)) return undefined
  const sides = readSides(change, directories)
  if (sides === undefined) return undefined
  const lines = unifiedDifference(
    sides.before?.toString() ?? '',
    sides.after?.toString() ?? '',
    (_, text) => text,
  )
  const count = (sign: string): number => lines.filter(line => line.startsWith(sign)).length
  return { added: count('+'), removed: count('-') }
}

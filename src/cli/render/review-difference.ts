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

/** Empty for a directory, and where only the mode differs. `names` are those of the two sides. */
export function reviewDifference(
  change: Change,
  directories: OpenDirectories,
  paint: Paint,
  [old, fresh]: readonly [string, string] = ['a', 'b'],
): string[] {
  const lines = bodyOf(change, directories, paint)
  if (lines.length === 0) return []
  const { path, before, after } = change
  const side = (sign: string, name: string, entry: Entry | undefined): string =>
    paint('bold', `${sign} ${has(entry) ? `${name}/${showPath(path)}` : '/dev/null'}`)
  return [side('---', old, before), side('+++', fresh, after), ...lines]
}

/** With a blank line before it. */
export function spacedDifference(...args: Parameters<typeof reviewDifference>): string[] {
  const lines = reviewDifference(...args)
  return lines.length === 0 ? [] : ['', ...lines]
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
function countLines(
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

/** Empty for what is no text. */
export function statLine(change: Change, directories: OpenDirectories, paint: Paint): string[] {
  const count = countLines(change, directories)
  if (count === undefined) return []
  const [added, removed] = [paint('green', `+${count.added}`), paint('red', `-${count.removed}`)]
  return [`${showPath(change.path)}  ${added} ${removed}`]
}

/** A line diff for the user who has to confirm the new text. Both texts can be hostile: every line is escaped. */
import { printable } from '../../base/printable.ts'
import type { Paint } from './colour.ts'

type Change = { readonly sign: ' ' | '-' | '+'; readonly line: string }

/** Larger comparisons would take seconds. Then all old lines are removed and all new lines are added. */
const MAX_PAIRS = 4_000_000
/** Unchanged lines shown around each change. */
const AROUND = 3
/** The maximum size of a Dockerfile: lines are never truncated. */
const LONGEST = 65_536

export function lineDifference(before: string, after: string, paint: Paint): string {
  const changes = compare(before.split('\n'), after.split('\n'))
  const near = changes.map((_, i) =>
    changes.slice(Math.max(0, i - AROUND), i + AROUND + 1).some(({ sign }) => sign !== ' '),
  )
  const shown: string[] = []
  for (const [i, { sign, line }] of changes.entries()) {
    if (near[i] === true) shown.push(painted(sign, `${sign} ${printable(line, LONGEST)}`, paint))
    else if (near[i - 1] !== false) shown.push('  …')
  }
  return shown.join('\n')
}

/** A text without an older version. */
export const allNew = (text: string, paint: Paint): string =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map(line => painted('+', `+ ${printable(line, LONGEST)}`, paint))
    .join('\n')

const painted = (sign: Change['sign'], text: string, paint: Paint): string =>
  sign === '+' ? paint('green', text) : sign === '-' ? paint('red', text) : text

/** Longest common subsequence. */
function compare(old: readonly string[], fresh: readonly string[]): Change[] {
  const width = fresh.length + 1
  if (old.length * width > MAX_PAIRS)
    return [
      ...old.map(line => ({ sign: '-', line }) as const),
      ...fresh.map(line => ({ sign: '+', line }) as const),
    ]
  const length = new Uint32Array((old.length + 1) * width)
  const at = (i: number, j: number): number => length[i * width + j] ?? 0
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = fresh.length - 1; j >= 0; j -= 1)
      length[i * width + j] =
        old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const changes: Change[] = []
  for (let i = 0, j = 0; i < old.length || j < fresh.length; ) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      changes.push({ sign: ' ', line: old[i] ?? '' })
      i += 1
      j += 1
    } else if (j >= fresh.length || (i < old.length && at(i + 1, j) >= at(i, j + 1))) {
      changes.push({ sign: '-', line: old[i] ?? '' })
      i += 1
    } else {
      changes.push({ sign: '+', line: fresh[j] ?? '' })
      j += 1
    }
  }
  return changes
}

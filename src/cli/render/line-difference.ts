/** A line diff for the user who has to confirm the new text. Both texts can be hostile: every line is escaped. */
import { printable } from '../../base/printable.ts'
import type { Paint } from './colour.ts'
import { compareLines, type LineChange } from './compare-lines.ts'

/** Unchanged lines shown around each change. */
const AROUND = 3
/** The maximum size of a Dockerfile: lines are never truncated. */
const LONGEST = 65_536

export function lineDifference(before: string, after: string, paint: Paint): string {
  const changes = compareLines(before.split('\n'), after.split('\n'))
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

const painted = (sign: LineChange['sign'], text: string, paint: Paint): string =>
  sign === '+' ? paint('green', text) : sign === '-' ? paint('red', text) : text

/** A unified difference of two hostile texts, with colours. Every line is escaped and none is left out. */
import { visible } from '../../base/printable.ts'
import type { Paint } from './colour.ts'
import { compareLines, type LineChange } from './compare-lines.ts'

/** Unchanged lines around each change. */
const AROUND = 3

export function unifiedDifference(before: string, after: string, paint: Paint): string[] {
  const changes = compareLines(linesOf(before), linesOf(after))
  const out: string[] = []
  let [old, fresh] = [1, 1]
  let hunk: LineChange[] = []
  let start: readonly [number, number] = [1, 1]
  let quiet = 0
  const finish = (): void => {
    const shown = hunk.slice(0, hunk.length - Math.max(0, quiet - AROUND))
    // There may be a million lines: too many for the arguments of one call.
    if (shown.some(({ sign }) => sign !== ' '))
      for (const line of hunkLines(shown, start, paint)) out.push(line)
    hunk = []
  }
  for (const [i, change] of changes.entries()) {
    if (change.sign !== ' ') quiet = 0
    else if (++quiet > 2 * AROUND && hunk.length > 0) finish()
    if (hunk.length === 0 && isNear(changes, i)) start = [old, fresh]
    if (hunk.length > 0 || isNear(changes, i)) hunk.push(change)
    if (change.sign !== '+') old++
    if (change.sign !== '-') fresh++
  }
  finish()
  return out
}

const isNear = (changes: readonly LineChange[], i: number): boolean =>
  changes.slice(i, i + AROUND + 1).some(({ sign }) => sign !== ' ')

function hunkLines(
  lines: readonly LineChange[],
  [old, fresh]: readonly [number, number],
  paint: Paint,
): string[] {
  const count = (but: string): number => lines.filter(({ sign }) => sign !== but).length
  const [removed, added] = [count('+'), count('-')]
  // An empty side is numbered by the line before it.
  const head = `@@ -${removed === 0 ? old - 1 : old},${removed} +${added === 0 ? fresh - 1 : fresh},${added} @@`
  return [
    paint('cyan', head),
    ...lines.flatMap(({ sign, line }) =>
      line.endsWith(NO_BREAK)
        ? [painted(sign, `${sign}${visible(line.slice(0, -1))}`, paint), '\\ No newline at end of file']
        : [painted(sign, `${sign}${visible(line)}`, paint)],
    ),
  ]
}

const painted = (sign: LineChange['sign'], text: string, paint: Paint): string =>
  sign === '+' ? paint('green', text) : sign === '-' ? paint('red', text) : text

/** Marks a last line without a line break. No line contains it. */
const NO_BREAK = '\n'

function linesOf(text: string): string[] {
  if (text === '') return []
  const lines = text.split('\n')
  const last = lines.pop() ?? ''
  if (last !== '') lines.push(last + NO_BREAK)
  return lines
}

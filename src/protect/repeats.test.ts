import { expect, test } from 'bun:test'
import { Repeats } from './repeats.ts'

/** How many times until it is too often. */
function countUntil(path: (i: number) => string, everyMs: number): number | undefined {
  const repeats = new Repeats()
  for (let i = 1; i <= 500; i++) if (repeats.isTooOften(path(i), i * everyMs)) return i
  return undefined
}

test.each([
  ['one place, at once', () => 'a', 1, 20],
  ['one place, every 600 ms: seldom occupied', () => 'a', 600, undefined],
  ['a new place each time, at once', (i: number) => `${i}`, 1, 64],
  ['twenty places in turn, one each second', (i: number) => `${i % 20}`, 1000, undefined],
])('%s: too often after the expected number', (_, path, everyMs, expected) => {
  expect(countUntil(path, everyMs)).toBe(expected)
})

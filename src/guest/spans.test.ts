import { expect, test } from 'bun:test'
import { Spans } from './spans.ts'

let now = 0
const at = (tick: number, act: () => void): void => {
  now = tick
  act()
}

test('a time belongs to the one execution that ran then, and to none where two did', () => {
  const spans = new Spans(() => now)
  at(10, () => spans.begin(1))
  at(20, () => spans.begin(2))
  at(30, () => spans.end(1))
  const owner = (tick: number) => [1, 2].filter(channel => spans.isAlone(channel, tick))
  expect([9, 10, 19, 20, 30, 31, 99].map(owner)).toEqual([[], [1], [1], [], [], [2], [2]])
})

test('a forgotten time belongs to no execution, and a running execution is never forgotten', () => {
  const spans = new Spans(() => now)
  at(1, () => spans.begin(1))
  for (let channel = 2; channel < 2000; channel++) {
    at(channel * 10, () => spans.begin(channel))
    at(channel * 10 + 5, () => spans.end(channel))
  }
  expect(spans.isAlone(1, 28)).toBe(false)
  expect(spans.isAlone(1, 19_997)).toBe(true)
})

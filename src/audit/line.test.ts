import { expect, test } from 'bun:test'
import { shortCommand } from './line.ts'

test('a command that is cut in a record says how long it was; a short one stands there whole', () => {
  expect(shortCommand(['cat', 'x'])).toEqual(['cat', 'x'])
  expect(shortCommand(Array.from({ length: 40 }, () => 'x')).slice(-2)).toEqual(['x', '… (40)'])
  expect(shortCommand(['y'.repeat(300)])).toEqual([`${'y'.repeat(200)}… (300)`])
})

import { expect, test } from 'bun:test'
import { unifiedDifference } from './unified-difference.ts'

test('a file of half a million lines is shown whole', () => {
  const lines = unifiedDifference('', '\n'.repeat(500_000), (_, text) => text)
  expect([lines.length, lines[0], lines.at(-1)]).toEqual([500_001, '@@ -0,0 +1,500000 @@', '+'])
})

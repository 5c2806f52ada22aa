import { describe, expect, test } from 'bun:test'
import { showAge, showSize, table } from './table.ts'

describe('a table', () => {
  test('is as wide as its cells, without blanks at the end', () => {
    expect(
      table(
        ['A', 'LONG', 'C'],
        [
          ['aaa', 'b', ''],
          ['a', 'b', 'c'],
        ],
      ),
    ).toEqual(['A    LONG  C', 'aaa  b', 'a    b     c'])
  })
})

describe('for people', () => {
  test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1024, '1 KiB'],
    [1536, '1.5 KiB'],
    [2 ** 30 * 4, '4 GiB'],
    [123_456_789, '118 MiB'],
  ])('%d bytes are %s', (bytes, text) => {
    expect(showSize(bytes)).toBe(text)
  })

  test.each([
    [0, '0s'],
    [119, '119s'],
    [600, '10m'],
    [7200, '2h'],
    [86_400 * 3, '3d'],
  ])('%d seconds are %s', (seconds, text) => {
    const now = Date.parse('2026-01-10T00:00:00.000Z')
    expect(showAge(new Date(now - seconds * 1000).toISOString(), now)).toBe(text)
  })
})

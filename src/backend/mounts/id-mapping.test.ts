import { describe, expect, test } from 'bun:test'
import { idMap } from './id-mapping.ts'

describe('an id mapping', () => {
  test.each([
    [0, 1, '0 1 1\n2 2 4294967293\n'],
    [0, 1000, '0 1000 1\n1 1 999\n1001 1001 4294966294\n'],
    [1002, 1000, '0 0 1000\n1002 1000 1\n1001 1001 1\n1003 1003 4294966292\n'],
    [1000, 1000, '0 0 1000\n1000 1000 1\n1001 1001 4294966294\n'],
  ])('of %d to %d leaves every other id as it is', (from, to, map) => {
    expect(idMap(from, to)).toBe(map)
  })

  test('that swaps two ids maps every id', () => {
    expect(idMap(0, 1000, 'swapped')).toBe('0 1000 1\n1000 0 1\n1 1 999\n1001 1001 4294966294\n')
    expect(idMap(1000, 1000, 'swapped')).toBe(idMap(1000, 1000))
  })
})

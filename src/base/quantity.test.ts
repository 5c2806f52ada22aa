import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PenError } from './error.ts'
import {
  type Bytes,
  MAX_MILLIS,
  type Millis,
  parseBytes,
  parseMillis,
  showBytes,
  showMillis,
} from './quantity.ts'

function refused(fn: () => unknown): PenError {
  try {
    fn()
  } catch (error) {
    if (error instanceof PenError) return error
    throw error
  }
  throw new Error('expected a refusal')
}

describe('sizes', () => {
  test.each([
    ['1', 1],
    ['4096', 4096],
    ['1KiB', 1024],
    ['512MiB', 512 * 2 ** 20],
    ['4GiB', 4 * 2 ** 30],
    ['2TiB', 2 * 2 ** 40],
  ])('%s is %d bytes', (text, n) => {
    expect<number>(parseBytes(text)).toBe(n)
  })

  test('what is printed parses back to the same number', () => {
    const size = fc.oneof(
      fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      fc.integer({ min: 1, max: 8191 }).map(n => n * 2 ** 40),
    )
    fc.assert(fc.property(size, n => expect<number>(parseBytes(showBytes(n as Bytes))).toBe(n)))
  })

  test('an ambiguous unit is refused with the spelling that was probably meant', () => {
    expect(refused(() => parseBytes('4G')).hint).toContain('write 4GiB')
    expect(refused(() => parseBytes('10GB')).hint).toContain('write 10GiB')
    expect(refused(() => parseBytes('64mib')).hint).toContain('write 64MiB')
  })

  test.each([
    '',
    '0',
    '0GiB',
    '-1',
    '+1',
    '01',
    '1.5GiB',
    '1e9',
    '1 GiB',
    ' 1',
    '1\n',
    '1GiB\n',
    '0x10',
    '१',
    '1PiB',
    '99999999TiB',
    '9007199254740992',
    '1constructor',
    'GiB',
    'Infinity',
    '1_000',
  ])('%j is refused', text => {
    const error = refused(() => parseBytes(text, 'config.json:3:5'))
    expect(error.code).toBe('CONFIG_VALUE')
    expect(error.at).toBe('config.json:3:5')
    expect(error.hint).toBeTruthy()
  })

  test('the largest size is a safe integer, and one byte more is refused', () => {
    expect<number>(parseBytes(String(Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER)
    expect(refused(() => parseBytes(String(2 ** 53))).hint).toBe('the largest size is 8191TiB')
  })
})

describe('durations', () => {
  test.each([
    ['250ms', 250],
    ['120s', 120_000],
    ['5m', 300_000],
    ['8h', 28_800_000],
    ['7d', 604_800_000],
  ])('%s is %d milliseconds', (text, n) => {
    expect<number>(parseMillis(text)).toBe(n)
  })

  test('what is printed parses back to the same number', () => {
    const length = fc.oneof(
      fc.integer({ min: 1, max: MAX_MILLIS }),
      fc.integer({ min: 1, max: 596 }).map(n => n * 3_600_000),
    )
    fc.assert(fc.property(length, n => expect<number>(parseMillis(showMillis(n as Millis))).toBe(n)))
  })

  test('a number without a unit is refused with both readings', () => {
    expect(refused(() => parseMillis('30')).hint).toBe('write 30s for seconds or 30ms for milliseconds')
  })

  test('longer than a timer can wait is refused, the longest is not', () => {
    expect(refused(() => parseMillis('25d')).hint).toBe('the longest duration is 24d')
    expect<number>(parseMillis('24d')).toBe(24 * 86_400_000)
  })

  test.each(['', '0', '0s', '-1s', '1.5h', '1h30m', '8H', '1 s', '1s ', '1w', '5min', '99999999999999999s'])(
    '%j is refused',
    text => {
      expect(refused(() => parseMillis(text)).code).toBe('CONFIG_VALUE')
    },
  )
})

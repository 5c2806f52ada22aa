import { PenError, type Place } from './error.ts'

/**
 * Amounts in configuration and flags. Each has one spelling, so `4G` cannot mean both 4,000,000,000 and 4,294,967,296.
 * Zero is refused, because some engines read it as "no limit".
 */

declare const bytesBrand: unique symbol
declare const millisBrand: unique symbol

/** A whole number of bytes, at least 1 and a safe integer. */
export type Bytes = number & { readonly [bytesBrand]: true }

/** A whole number of milliseconds, at least 1 and at most the longest timer. */
export type Millis = number & { readonly [millisBrand]: true }

const MAX_BYTES = Number.MAX_SAFE_INTEGER

/** `setTimeout` fires at once for more than 2³¹−1 ms, so no Millis is longer. */
export const MAX_MILLIS = 2 ** 31 - 1

const BYTE_UNITS = { TiB: 2 ** 40, GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10, '': 1 } as const
const MILLI_UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const

interface Kind {
  readonly name: string
  readonly units: Readonly<Record<string, number>>
  readonly most: number
  readonly cure: (digits: string, unit: string, n: number) => string
}

const SIZE: Kind = { name: 'a size', units: BYTE_UNITS, most: MAX_BYTES, cure: sizeCure }
const DURATION: Kind = { name: 'a duration', units: MILLI_UNITS, most: MAX_MILLIS, cure: durationCure }

/** `at` is the place of the text, for the error. */
export const parseBytes = (text: string, at?: Place | string): Bytes => parse(text, SIZE, at) as Bytes
export const parseMillis = (text: string, at?: Place | string): Millis => parse(text, DURATION, at) as Millis

function parse(text: string, { name, units, most, cure }: Kind, at: Place | string | undefined): number {
  const [digits, unit] = split(text)
  const scale = Object.hasOwn(units, unit) ? units[unit] : undefined
  const n = Number(digits) * (scale ?? 0)
  if (scale !== undefined && n <= most) return n
  throw new PenError('CONFIG_VALUE', {
    what: `"${text}" is not ${name}`,
    ...(at !== undefined && { at }),
    hint: cure(digits, unit, n),
  })
}

export const showBytes = (n: Bytes): string => show(n, BYTE_UNITS)
export const showMillis = (n: Millis): string => show(n, MILLI_UNITS)

function show(n: number, units: Readonly<Record<string, number>>): string {
  for (const [unit, scale] of Object.entries(units)) if (n % scale === 0) return `${n / scale}${unit}`
  return `${n}`
}

/** The digits are a whole number from 1. A text of another form has the unit `?`, which no table has. */
function split(text: string): [digits: string, unit: string] {
  const match = /^([1-9][0-9]{0,15})([A-Za-z]{0,3})$/.exec(text)
  return [match?.[1] ?? '', match?.[2] ?? (match ? '' : '?')]
}

function sizeCure(digits: string, unit: string, n: number): string {
  if (n > MAX_BYTES) return 'the largest size is 8191TiB'
  const letter = /^([kmgt])i?b?$/i.exec(unit)?.[1]?.toUpperCase()
  if (letter) return `write ${digits}${letter}iB (1024-based), or the exact number of bytes`
  return 'write a whole number above zero and KiB, MiB, GiB or TiB, such as 512MiB, or a number of bytes'
}

function durationCure(digits: string, unit: string, n: number): string {
  if (n > MAX_MILLIS) return 'the longest duration is 24d'
  if (digits !== '' && unit === '') return `write ${digits}s for seconds or ${digits}ms for milliseconds`
  return 'write a whole number above zero and ms, s, m, h or d, such as 90s or 8h'
}

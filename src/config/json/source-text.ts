/**
 * The only place where bytes of a configuration file become text. The file may come from a project that an agent can write.
 * Invalid UTF-8 is refused, never replaced: otherwise a reader and the program could see different hosts.
 */
import { isUtf8 } from 'node:buffer'
import { PenError, type Place } from '../../base/error.ts'

export const MAX_BYTES = 65536

/** Checked text that maps UTF-16 offsets to places in the file. Only `decodeText` makes one. */
export interface SourceText {
  readonly text: string
  placeAt(offset: number): Place
  /** A syntax error at an offset, for the caller to throw. `what` contains no raw text of the file. */
  refusal(offset: number, what: string, hint: string): PenError
}

export function decodeText(bytes: Uint8Array, file: string, maxBytes: number = MAX_BYTES): SourceText {
  const start = locate(file, '')
  if (bytes.length > maxBytes)
    throw start.refusal(0, `the file has ${bytes.length} bytes, more than ${maxBytes}`, 'make it smaller')
  const [a, b, c] = bytes
  if (a === 0xef && b === 0xbb && c === 0xbf)
    throw start.refusal(0, 'the file starts with a byte order mark', 'save it as UTF-8 without a BOM')
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff) || (bytes.length > 1 && (a === 0 || b === 0)))
    throw start.refusal(0, 'the file looks like UTF-16 or UTF-32', 'save it as UTF-8')

  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  // Only a refusal needs the position. The byte loop is most of the cost of a large document.
  const bad = isUtf8(bytes) ? undefined : firstInvalid(bytes)
  if (bad === undefined) {
    const source = locate(file, utf8.decode(bytes))
    const bare = source.text.search(/\r(?!\n)/)
    if (bare < 0) return source
    throw source.refusal(bare, 'a carriage return without a line feed', 'end lines with LF or CRLF')
  }
  const before = locate(file, utf8.decode(bytes.subarray(0, bad.at)))
  const hex = (bytes[bad.at] ?? 0).toString(16).padStart(2, '0')
  throw before.refusal(
    before.text.length,
    `byte ${bad.at + 1} (0x${hex}) is not UTF-8: ${bad.why}`,
    'save it as UTF-8',
  )
}

/** The start of the first ill-formed UTF-8 sequence (Unicode table 3-7). */
function firstInvalid(bytes: Uint8Array): { at: number; why: string } | undefined {
  let at = 0
  while (at < bytes.length) {
    const lead = bytes[at] ?? 0
    if (lead < 0x80) {
      at++
      continue
    }
    if (lead < 0xc0) return { at, why: 'an unexpected continuation byte' }
    if (lead < 0xc2) return { at, why: 'an overlong form' }
    if (lead > 0xf4) return { at, why: 'beyond U+10FFFF' }
    const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    const second = bytes[at + 1] ?? 0
    for (let i = 1; i < length; i++)
      if (((bytes[at + i] ?? 0) & 0xc0) !== 0x80) return { at, why: 'the character is cut short' }
    if ((lead === 0xe0 && second < 0xa0) || (lead === 0xf0 && second < 0x90))
      return { at, why: 'an overlong form' }
    if (lead === 0xed && second > 0x9f) return { at, why: 'a surrogate' }
    if (lead === 0xf4 && second > 0x8f) return { at, why: 'beyond U+10FFFF' }
    at += length
  }
  return undefined
}

/** A place costs one binary search, so every rule of a large policy can have one. */
function locate(file: string, text: string): SourceText {
  let index: { lines: number[]; astral: number[] } | undefined
  const placeAt = (offset: number): Place => {
    index ??= indexOf(text)
    const line = countUpTo(index.lines, offset)
    const start = index.lines[line - 1] ?? 0
    const pairs =
      index.astral.length === 0 ? 0 : countUpTo(index.astral, offset - 1) - countUpTo(index.astral, start - 1)
    return { file, line, column: offset - start - pairs + 1 }
  }
  const refusal = (offset: number, what: string, hint: string) =>
    new PenError('CONFIG_SYNTAX', { what, at: placeAt(offset), hint })
  return { text, placeAt, refusal }
}

/** The offsets of line starts, and of characters that take two UTF-16 units. */
function indexOf(text: string): { lines: number[]; astral: number[] } {
  const lines = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.push(at + 1)
  return { lines, astral: Array.from(text.matchAll(/[\ud800-\udbff]/g), match => match.index) }
}

/** How many elements of an ascending list are at most `limit`. */
function countUpTo(ascending: readonly number[], limit: number): number {
  let low = 0
  let high = ascending.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ascending[middle] ?? 0) <= limit) low = middle + 1
    else high = middle
  }
  return low
}

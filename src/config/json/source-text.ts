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

  const source = locate(file, new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes))
  if (!isUtf8(bytes)) throw notUtf8(bytes, source)
  const bare = source.text.search(/\r(?!\n)/)
  if (bare < 0) return source
  throw source.refusal(bare, 'a carriage return without a line feed', 'end lines with LF or CRLF')
}

/** The decoder writes U+FFFD for an invalid byte. The file may also contain that character itself, as three bytes. */
function notUtf8(bytes: Uint8Array, source: SourceText): PenError {
  let at = 0
  let byte = 0
  for (const char of source.text) {
    const isInFile = bytes[byte] === 0xef && bytes[byte + 1] === 0xbf && bytes[byte + 2] === 0xbd
    if (char === '\ufffd' && !isInFile) break
    at += char.length
    byte += Buffer.byteLength(char)
  }
  const hex = (bytes[byte] ?? 0).toString(16).padStart(2, '0')
  return source.refusal(at, `byte ${byte + 1} (0x${hex}) is not UTF-8`, 'save it as UTF-8')
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

/**
 * The head of an HTTP/1 message: its end and its fields. This is RFC 9112 in its strictest reading. Everything that two
 * parsers could read differently is an error: a bare LF, a folded line, a space before the colon.
 */
import type { ByteStream } from '../stream/byte-stream.ts'

export interface Field {
  /** As written. */
  readonly name: string
  /** The name in lower case. */
  readonly key: string
  readonly value: string
}

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  /** Responses only. */
  | { readonly kind: 'until-close' }

/** `status` goes to a client with a bad request. A bad response is always a 502. */
export interface BadHead {
  readonly kind: 'bad'
  readonly status: 400 | 405 | 414 | 431 | 501 | 505
  readonly why: string
}

export type HeadEnd =
  | { readonly kind: 'more'; readonly scanned: number }
  | { readonly kind: 'end'; readonly end: number }
  | BadHead

export const badHead = (why: string, status: BadHead['status'] = 400): BadHead => ({
  kind: 'bad',
  status,
  why,
})

/** Continues at `scanned`, so that slow input is not scanned again and again. */
export function findHeadEnd(bytes: Uint8Array, scanned: number, max: number): HeadEnd {
  for (let at = scanned; at < bytes.length; at++) {
    if (at >= max) return badHead('the head is too long', 431)
    const byte = bytes[at] ?? 0
    if (byte >= 0x20 && byte !== 0x7f) continue
    if (byte === 0x0d) {
      if (at + 1 === bytes.length) return { kind: 'more', scanned: at }
      if (bytes[at + 1] !== 0x0a) return badHead('a CR without LF')
      at++
      if (bytes[at - 3] === 0x0d && bytes[at - 2] === 0x0a) return { kind: 'end', end: at + 1 }
    } else if (byte === 0x0a) return badHead('a line ends in LF alone')
    else if (byte !== 0x09) return badHead('a control character')
  }
  return { kind: 'more', scanned: bytes.length }
}

/** Waits for the end of a head, and consumes nothing. Undefined when the stream or the time ends before it. */
export function awaitHeadEnd(
  stream: ByteStream,
  max: number,
  ms?: number,
): Promise<Exclude<HeadEnd, { readonly kind: 'more' }> | undefined> {
  let scanned = 0
  return stream.readUntil(held => {
    const end = findHeadEnd(held, scanned, max)
    if (end.kind !== 'more') return end
    scanned = end.scanned
    return undefined
  }, ms)
}

const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*)$/s

export function readFields(lines: readonly string[], max: number): readonly Field[] | BadHead {
  if (lines.length > max) return badHead('too many header fields', 431)
  const fields: Field[] = []
  for (const line of lines) {
    if (line.startsWith(' ') || line.startsWith('\t')) return badHead('a folded header line')
    const match = FIELD.exec(line)
    if (match === null) return badHead('a malformed header line')
    const [, name = '', rest = ''] = match
    fields.push({ name, key: name.toLowerCase(), value: trimEnd(rest) })
  }
  return fields
}

/** Not a regular expression, because that takes quadratic time on a hostile value. */
function trimEnd(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === ' ' || text[end - 1] === '\t')) end--
  return text.slice(0, end)
}

export const valuesOf = (fields: readonly Field[], key: string): string[] =>
  fields.filter(field => field.key === key).map(field => field.value)

/** The members of a comma-separated list, in lower case. */
export const listOf = (fields: readonly Field[], key: string): string[] =>
  valuesOf(fields, key).flatMap(value =>
    value
      .toLowerCase()
      .split(',')
      .map(part => part.trim())
      .filter(part => part !== ''),
  )

/** Undefined without Content-Length and Transfer-Encoding. */
export function framingOf(fields: readonly Field[], minor: 0 | 1): Framing | BadHead | undefined {
  const lengths = valuesOf(fields, 'content-length')
  const codings = valuesOf(fields, 'transfer-encoding')
  if (codings.length > 0) {
    if (lengths.length > 0) return badHead('both Content-Length and Transfer-Encoding')
    if (minor === 0) return badHead('Transfer-Encoding in HTTP/1.0')
    if (codings.length > 1 || codings[0]?.toLowerCase() !== 'chunked')
      return badHead('a Transfer-Encoding other than chunked', 501)
    return { kind: 'chunked' }
  }
  const [length] = lengths
  if (length === undefined) return undefined
  if (lengths.length > 1) return badHead('more than one Content-Length')
  if (!/^(?:0|[1-9][0-9]{0,14})$/.test(length)) return badHead('a malformed Content-Length')
  return { kind: 'length', length: Number(length) }
}

/** Fields of one hop, framing fields (each hop writes its own), and fields that only pen may set. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'content-length',
  'upgrade',
  'http2-settings',
  'x-pen-denied',
  'x-pen-error',
])

/**
 * The fields for the next hop. Also drops spellings such as `Transfer_Encoding` and `Proxy.Authorization`, because servers
 * that turn field names into variables read them as the real ones. Drops the fields that `Connection` names, except Host,
 * which the gateway sets itself.
 */
export function endToEnd(fields: readonly Field[]): Field[] {
  const named = new Set(listOf(fields, 'connection'))
  return fields.filter(({ key }) => {
    const folded = key.replaceAll(/[_.]/g, '-')
    if (HOP_BY_HOP.has(folded)) return false
    return key === 'host' || !named.has(key)
  })
}

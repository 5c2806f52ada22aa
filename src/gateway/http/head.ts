/** Reads request heads from a sandbox and response heads from servers. Both are hostile. */
import type { GatewayLimits } from '../limits.ts'
import { type BadHead, badHead, type Field, type Framing, framingOf, readFields, valuesOf } from './field.ts'

export interface RequestHead {
  readonly kind: 'request'
  readonly method: string
  readonly target: string
  readonly minor: 0 | 1
  readonly fields: readonly Field[]
  /** As written. Undefined only in HTTP/1.0. */
  readonly host: string | undefined
  readonly framing: Framing
}

export interface ResponseHead {
  readonly kind: 'response'
  readonly status: number
  readonly reason: string
  readonly minor: 0 | 1
  readonly fields: readonly Field[]
  readonly framing: Framing
}

type HeadLimits = Pick<GatewayLimits, 'maxTarget' | 'maxRequestFields' | 'maxResponseFields'>

// The method is upper case: methods are case-sensitive, and a server that ignores case would run an unjudged method.
// curl sends non-ASCII bytes of a URL as they are. The gateway forwards them percent-encoded.
const REQUEST_LINE = /^([A-Z][A-Z-]{0,31}) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.([01])$/
const ANY_VERSION = / HTTP\/([0-9])(?:\.([0-9]))?$/

/** `head` ends with the empty line. `findHeadEnd` has checked it for control characters. */
export function readRequestHead(head: Uint8Array, limits: HeadLimits): RequestHead | BadHead {
  const [first = '', ...lines] = linesOf(head)
  const line = REQUEST_LINE.exec(first)
  if (line === null) return refuseLine(first, limits)
  const [, method = '', target = '', minorText] = line
  if (target.length > limits.maxTarget) return badHead('the request target is too long', 414)
  if (target.includes('#')) return badHead('a fragment in the request target')
  const fields = readFields(lines, limits.maxRequestFields)
  if ('kind' in fields) return fields

  const minor = minorText === '0' ? 0 : 1
  const hosts = valuesOf(fields, 'host')
  if (hosts.length > 1) return badHead('more than one Host')
  if (hosts.length === 0 && minor === 1) return badHead('no Host')
  const framing = framingOf(fields, minor) ?? { kind: 'none' }
  if (framing.kind === 'bad') return framing
  return { kind: 'request', method, target, minor, fields, host: hosts[0], framing }
}

function refuseLine(line: string, limits: HeadLimits): BadHead {
  if (line.length > limits.maxTarget) return badHead('the request line is too long', 414)
  const [, major, minor] = ANY_VERSION.exec(line) ?? []
  if (major === undefined) return badHead('not a request line of HTTP/1.1')
  if (major === '2') return badHead('HTTP/2 without TLS', 505)
  if (major !== '1' || (minor !== '0' && minor !== '1')) return badHead('an unknown version of HTTP', 505)
  return badHead('a malformed request line')
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: ([^\0]*))?$/

/** `method` is that of the request: a response to HEAD has no body, whatever the fields say. */
export function readResponseHead(
  head: Uint8Array,
  method: string,
  limits: HeadLimits,
): ResponseHead | BadHead {
  const [first = '', ...lines] = linesOf(head)
  const line = STATUS_LINE.exec(first)
  if (line === null) return badHead('a malformed status line')
  const [, minorText, statusText, reason = ''] = line
  const fields = readFields(lines, limits.maxResponseFields)
  if ('kind' in fields) return fields
  const minor = minorText === '0' ? 0 : 1
  const status = Number(statusText)
  const said = framingOf(fields, minor)
  if (said?.kind === 'bad') return said
  const isBodiless = method === 'HEAD' || status < 200 || status === 204 || status === 304
  const framing: Framing = isBodiless ? { kind: 'none' } : (said ?? { kind: 'until-close' })
  return { kind: 'response', status, reason, minor, fields, framing }
}

function linesOf(head: Uint8Array): string[] {
  return Buffer.from(head.buffer, head.byteOffset, head.length - 4)
    .toString('latin1')
    .split('\r\n')
}

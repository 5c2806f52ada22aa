/**
 * Reads DNS queries and writes replies. Queries are hostile, and no two readers may differ about one. So a query has one
 * question, at most one OPT record, no pointers and no trailing bytes. Replies repeat the bytes of the question.
 */

export const TYPE_A = 1
export const CLASS_IN = 1
const TYPE_OPT = 41

export const RCODE = { ok: 0, malformed: 1, failed: 2, noName: 3, notImplemented: 4, refused: 5 } as const
export type Rcode = (typeof RCODE)[keyof typeof RCODE]
/** Its upper bits fit only into an OPT record. */
const BAD_VERSION = 16

const HEADER = 12
const MAX_NAME = 255
/** Ordinary queries are shorter. RFC 9715 recommends this size for UDP. */
export const MAX_QUERY = 1232
const UDP_SIZE = 1232

export interface Question {
  /** As spelled, without the last dot. Undefined when a label contains a byte that no host name has. */
  readonly name: string | undefined
  readonly type: number
  readonly class: number
  /** The offset after the question. */
  readonly end: number
  /** The OPT record of the query, and whether it asks for DNSSEC. */
  readonly opt: { readonly dnssec: boolean } | undefined
}

export type Read =
  | { readonly is: 'question'; readonly question: Question }
  /** Readable enough for an error reply: a header, and an OPT record for a bad version. */
  | { readonly is: 'refused'; readonly reply: Buffer }
  | { readonly is: 'malformed' }

const MALFORMED: Read = { is: 'malformed' }

export function readQuery(query: Buffer): Read {
  if (query.length < HEADER || query.length > MAX_QUERY) return MALFORMED
  const flags = query.readUInt16BE(2)
  // Replying to a response could make two servers talk forever.
  if ((flags & 0x8000) !== 0) return MALFORMED
  if ((flags & 0x7800) !== 0) return refuse(query, RCODE.notImplemented)
  const additional = query.readUInt16BE(10)
  if (query.readUInt16BE(4) !== 1 || query.readUInt32BE(6) !== 0 || additional > 1)
    return refuse(query, RCODE.malformed)

  const nameEnd = endOfName(query)
  if (nameEnd === undefined || nameEnd + 4 > query.length) return MALFORMED
  const end = nameEnd + 4
  const opt = additional === 1 ? readOpt(query, end) : undefined
  if (additional === 1 ? opt === undefined : query.length !== end) return MALFORMED
  if (opt === 'bad version') return refuse(query, BAD_VERSION)
  const question = {
    name: spellName(query, nameEnd),
    type: query.readUInt16BE(nameEnd),
    class: query.readUInt16BE(nameEnd + 2),
    end,
    opt,
  }
  return { is: 'question', question }
}

/** Writes a header, the bytes of the question, at most one address, and an OPT record if the query had one. */
export function writeReply(
  query: Buffer,
  question: Question,
  rcode: Rcode,
  address?: number,
  ttl = 0,
): Buffer {
  const { end, opt } = question
  const reply = Buffer.allocUnsafe(end + (address === undefined ? 0 : 16) + (opt === undefined ? 0 : 11))
  query.copy(reply, 0, 0, end)
  writeHeader(reply, query, rcode)
  reply.writeUInt16BE(1, 4)
  let at = end
  if (address !== undefined) {
    reply.writeUInt16BE(1, 6)
    reply.writeUInt16BE(0xc000 + HEADER, at)
    reply.writeUInt32BE((TYPE_A << 16) | CLASS_IN, at + 2)
    reply.writeUInt32BE(ttl, at + 6)
    reply.writeUInt16BE(4, at + 10)
    reply.writeUInt32BE(address, at + 12)
    at += 16
  }
  if (opt !== undefined) writeOpt(reply, at, 0, opt.dnssec)
  return reply
}

/**
 * Sets "recursion available": without it, glibc and Go take an empty answer for a lame server and ask another one. Does
 * not set "authoritative".
 */
function writeHeader(reply: Buffer, query: Buffer, rcode: number): void {
  const asked = query.readUInt16BE(2) & 0x7910
  reply.writeUInt16BE(query.readUInt16BE(0), 0)
  reply.writeUInt16BE(0x8080 | asked | (rcode & 15), 2)
  reply.fill(0, 4, HEADER)
}

function writeOpt(reply: Buffer, at: number, upperRcode: number, dnssec: boolean): void {
  reply.writeUInt16BE(1, 10)
  reply.writeUInt8(0, at)
  reply.writeUInt16BE(TYPE_OPT, at + 1)
  reply.writeUInt16BE(UDP_SIZE, at + 3)
  reply.writeUInt32BE(upperRcode * 2 ** 24 + (dnssec ? 0x8000 : 0), at + 5)
  reply.writeUInt16BE(0, at + 9)
}

function refuse(query: Buffer, rcode: number): Read {
  const reply = Buffer.allocUnsafe(HEADER + (rcode > 15 ? 11 : 0))
  writeHeader(reply, query, rcode)
  if (rcode > 15) writeOpt(reply, HEADER, rcode >> 4, false)
  return { is: 'refused', reply }
}

/** The offset after the name. Undefined for pointers, reserved label types, and names that are too long or cut off. */
function endOfName(query: Buffer): number | undefined {
  for (let at = HEADER; at < query.length && at - HEADER < MAX_NAME; ) {
    const length = query[at] ?? 0
    if (length === 0) return at + 1
    if (length > 63) return undefined
    at += 1 + length
  }
  return undefined
}

/** Undefined when a label contains a dot, which would read as two labels, or any other byte that host names lack. */
function spellName(query: Buffer, end: number): string | undefined {
  let name = ''
  for (let at = HEADER; at < end - 1; ) {
    const length = query[at] ?? 0
    const label = query.toString('latin1', at + 1, at + 1 + length)
    if (!/^[\w-]+$/.test(label)) return undefined
    name = name === '' ? label : `${name}.${label}`
    at += 1 + length
  }
  return name
}

/** An OPT record must be last: root name, type OPT, and options whose lengths add up. */
function readOpt(query: Buffer, at: number): { dnssec: boolean } | 'bad version' | undefined {
  if (at + 11 > query.length || query[at] !== 0 || query.readUInt16BE(at + 1) !== TYPE_OPT) return undefined
  const end = at + 11 + query.readUInt16BE(at + 9)
  if (end !== query.length) return undefined
  let option = at + 11
  while (option < end) {
    if (option + 4 > end) return undefined
    option += 4 + query.readUInt16BE(option + 2)
  }
  if (option !== end) return undefined
  return query[at + 6] === 0 ? { dnssec: ((query[at + 7] ?? 0) & 0x80) !== 0 } : 'bad version'
}

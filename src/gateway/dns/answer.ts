import { isLoopbackName, parseHost } from '../../policy/network/host.ts'
import { CLASS_IN, RCODE, readQuery, TYPE_A, writeReply } from './message.ts'
import type { NameTable } from './names.ts'

export type DnsTrouble = 'malformed' | 'invalid-name' | 'pool'

export interface DnsAnswer {
  /** Undefined: say nothing. */
  readonly reply: Buffer | undefined
  readonly trouble: DnsTrouble | undefined
  /** What was asked for when that is the trouble. Hostile. */
  readonly raw?: string | undefined
}

/** The binding never changes; it may be asked again because caches are the program's own affair. */
const TTL_SECONDS = 60
const LOOPBACK = 0x7f000001

/**
 * What pen says to one query. Every name has an address here, and nobody is asked: whether the name may be reached is
 * decided when it is connected to, with the port. Types other than A exist but are empty (NODATA): REFUSED makes musl
 * wait five seconds, and NXDOMAIN for AAAA makes it give the name up.
 */
export function answerQuery(query: Buffer, names: NameTable): DnsAnswer {
  const read = readQuery(query)
  if (read.is === 'malformed') return { reply: undefined, trouble: 'malformed' }
  if (read.is === 'refused') return { reply: read.reply, trouble: 'malformed' }
  const { question } = read
  const empty = (rcode: (typeof RCODE)[keyof typeof RCODE]): Buffer => writeReply(query, question, rcode)
  if (question.class !== CLASS_IN) return fine(empty(RCODE.refused))
  // The root exists, and has no address.
  if (question.type !== TYPE_A || question.name === '') return fine(empty(RCODE.ok))
  const host = question.name === undefined ? undefined : parseHost(question.name)
  if (!host?.ok) return { reply: empty(RCODE.noName), trouble: 'invalid-name', raw: question.name }
  if (isLoopbackName(host.value)) return fine(writeReply(query, question, RCODE.ok, LOOPBACK, TTL_SECONDS))
  const address = names.numberFor(host.value)
  if (address === undefined) return { reply: empty(RCODE.failed), trouble: 'pool', raw: host.value }
  return fine(writeReply(query, question, RCODE.ok, address, TTL_SECONDS))
}

const fine = (reply: Buffer): DnsAnswer => ({ reply, trouble: undefined })

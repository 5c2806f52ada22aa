import { isLoopbackName, parseHost } from '../../policy/network/host.ts'
import { CLASS_IN, RCODE, readQuery, TYPE_A, writeReply } from './message.ts'
import type { NameTable } from './names.ts'

type Problem = 'malformed' | 'invalid-name' | 'pool'

export interface DnsAnswer {
  /** Undefined: send nothing. */
  readonly reply: Buffer | undefined
  /** Why the query got no address. */
  readonly problem: Problem | undefined
  /** The name of such a query. Hostile. */
  readonly raw?: string | undefined
}

/** Short, although the address of a name never changes: programs need not cache it. */
const TTL_SECONDS = 60
const LOOPBACK = 0x7f000001

/**
 * Answers one query. Every name gets an address, and no server is asked: the policy decides when a program connects, with
 * the port. Types other than A get an empty answer (NODATA). REFUSED would make musl wait five seconds, and NXDOMAIN for
 * AAAA would make it give up the name.
 */
export function answerQuery(query: Buffer, names: NameTable): DnsAnswer {
  const read = readQuery(query)
  if (read.is === 'malformed') return { reply: undefined, problem: 'malformed' }
  if (read.is === 'refused') return { reply: read.reply, problem: 'malformed' }
  const { question } = read
  const empty = (rcode: (typeof RCODE)[keyof typeof RCODE]): Buffer => writeReply(query, question, rcode)
  if (question.class !== CLASS_IN) return fine(empty(RCODE.refused))
  // The root exists and has no address.
  if (question.type !== TYPE_A || question.name === '') return fine(empty(RCODE.ok))
  const host = question.name === undefined ? undefined : parseHost(question.name)
  if (!host?.ok) return { reply: empty(RCODE.noName), problem: 'invalid-name', raw: question.name }
  if (isLoopbackName(host.value)) return fine(writeReply(query, question, RCODE.ok, LOOPBACK, TTL_SECONDS))
  const address = names.numberFor(host.value)
  if (address === undefined) return { reply: empty(RCODE.failed), problem: 'pool', raw: host.value }
  return fine(writeReply(query, question, RCODE.ok, address, TTL_SECONDS))
}

const fine = (reply: Buffer): DnsAnswer => ({ reply, problem: undefined })

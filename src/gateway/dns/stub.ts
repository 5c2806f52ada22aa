import type { Socket as UdpSocket } from 'node:dgram'
import type { AuditEventOf, AuditSink } from '../../audit/event.ts'
import { TokenBucket } from '../../base/token-bucket.ts'
import { isLoopbackName, parseHost } from '../../policy/network/host.ts'
import { ByteStream } from '../stream/byte-stream.ts'
import type { StreamSocket } from '../stream/stream-socket.ts'
import { CLASS_IN, RCODE, type Rcode, readQuery, TYPE_A, writeReply } from './message.ts'
import type { NameTable } from './names.ts'
import { serveStream } from './stream.ts'

const LIMITS = { queriesPerSecond: 100_000, tcpConnections: 64 }

export interface DnsOptions {
  readonly names: NameTable
  readonly audit: AuditSink
  readonly limits?: Partial<typeof LIMITS>
}

/** Answers the DNS queries of a sandbox on the sockets of its door. It opens no socket and asks no server. */
export class DnsStub {
  readonly #names: NameTable
  readonly #limits: Readonly<typeof LIMITS>
  readonly #rate: TokenBucket
  readonly #refused: RefusedQueries
  readonly #tcp = new Set<StreamSocket>()

  constructor({ names, audit, limits }: DnsOptions) {
    this.#names = names
    this.#limits = { ...LIMITS, ...limits }
    const { queriesPerSecond } = this.#limits
    this.#rate = new TokenBucket(queriesPerSecond, queriesPerSecond)
    this.#refused = new RefusedQueries(audit)
  }

  serveUdp(socket: UdpSocket): void {
    socket.on('error', () => undefined)
    socket.on('message', (query, { port, address }) => {
      const reply = this.#answer(query)
      if (reply !== undefined) send(socket, reply, port, address, SEND_TRIES)
    })
  }

  serveTcp(socket: StreamSocket): void {
    if (this.#tcp.size >= this.#limits.tcpConnections) {
      this.#refused.add('rate')
      socket.destroy()
      return
    }
    this.#tcp.add(socket)
    const client = new ByteStream(socket)
    client.onClose = () => this.#tcp.delete(socket)
    serveStream(client, query => this.#answer(query)).catch(() => socket.destroy())
  }

  /** The caller has closed the sockets of the door. */
  close(): void {
    for (const socket of this.#tcp) socket.destroy()
    this.#refused.flush()
  }

  #answer(query: Buffer): Buffer | undefined {
    if (!this.#rate.take()) {
      this.#refused.add('rate')
      return undefined
    }
    const { reply, problem, raw } = answerQuery(query, this.#names)
    if (problem !== undefined) this.#refused.add(problem, raw)
    return reply
  }
}

export interface DnsAnswer {
  /** Undefined: send nothing. */
  readonly reply: Buffer | undefined
  /** Why the query got no address. */
  readonly problem: Reason | undefined
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
  const empty = (rcode: Rcode): Buffer => writeReply(query, question, rcode)
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

/**
 * When a client closes before its reply arrives, the kernel reports ECONNREFUSED at the *next* send to any client, and
 * drops that reply. So the send is retried. Otherwise one such client would cost other clients their replies.
 */
const SEND_TRIES = 4

function send(socket: UdpSocket, reply: Buffer, port: number, address: string, tries: number): void {
  try {
    socket.send(reply, 0, reply.length, port, address, error => {
      if (error && tries > 1) send(socket, reply, port, address, tries - 1)
    })
  } catch {
    // The socket is closed, or the source port is forged. The reply is lost, as any packet may be.
  }
}

/** The first refusal of a kind is recorded at once. Further ones are counted and recorded after this time. */
const INTERVAL_MS = 10_000

type Reason = AuditEventOf<'dns-refused'>['reason']

/** Records queries that got no address, without letting a flood of them fill the audit. */
class RefusedQueries {
  readonly #audit: AuditSink
  readonly #counts = new Map<Reason, number>()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(audit: AuditSink) {
    this.#audit = audit
  }

  add(reason: Reason, raw?: string): void {
    const count = this.#counts.get(reason)
    if (count !== undefined) {
      this.#counts.set(reason, count + 1)
      return
    }
    this.#counts.set(reason, 0)
    this.#record(reason, 1, raw)
    this.#timer ??= setTimeout(() => this.flush(), INTERVAL_MS)
    this.#timer.unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const [reason, count] of this.#counts) if (count > 0) this.#record(reason, count)
    this.#counts.clear()
  }

  #record(reason: Reason, count: number, raw?: string): void {
    try {
      this.#audit.record({ kind: 'dns-refused', reason, count, raw })
    } catch {
      // The query is refused either way. The audit counts the records that it could not write.
    }
  }
}

import type { Socket as UdpSocket } from 'node:dgram'
import type { AuditEventOf, AuditSink } from '../../audit/event.ts'
import { TokenBucket } from '../../base/token-bucket.ts'
import type { StreamSocket } from '../stream/stream-socket.ts'
import { answerQuery } from './answer.ts'
import type { NameTable } from './names.ts'
import { DnsStream } from './stream.ts'

export interface DnsLimits {
  readonly queriesPerSecond: number
  readonly tcpConnections: number
}

const LIMITS: DnsLimits = { queriesPerSecond: 100_000, tcpConnections: 64 }

export interface DnsOptions {
  readonly names: NameTable
  readonly audit: AuditSink
  readonly limits?: Partial<DnsLimits>
}

/** Answers the DNS queries of a sandbox on the sockets of its door. It opens no socket and asks no server. */
export class DnsStub {
  readonly #names: NameTable
  readonly #limits: DnsLimits
  readonly #rate: TokenBucket
  readonly #refused: RefusedQueries
  readonly #udp = new Set<UdpSocket>()
  readonly #tcp = new Set<StreamSocket>()

  constructor({ names, audit, limits }: DnsOptions) {
    this.#names = names
    this.#limits = { ...LIMITS, ...limits }
    const { queriesPerSecond } = this.#limits
    this.#rate = new TokenBucket(queriesPerSecond, queriesPerSecond)
    this.#refused = new RefusedQueries(audit)
  }

  serveUdp(socket: UdpSocket): void {
    this.#udp.add(socket)
    socket.on('error', ignore)
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
    new DnsStream(
      socket,
      query => this.#answer(query),
      () => this.#tcp.delete(socket),
    )
  }

  close(): void {
    for (const socket of this.#udp) socket.close()
    for (const socket of this.#tcp) socket.destroy()
    this.#udp.clear()
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

const ignore = (): void => {}

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

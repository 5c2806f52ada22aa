import type { Socket as UdpSocket } from 'node:dgram'
import type { AuditSink } from '../../audit/event.ts'
import type { StreamSocket } from '../stream/stream-socket.ts'
import { answerQuery } from './answer.ts'
import type { NameTable } from './names.ts'
import { DnsRate } from './rate.ts'
import { DnsStream } from './stream.ts'
import { DnsTroubles } from './troubles.ts'

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

/** Answers a sandbox's DNS on the sockets that its door hands over. It opens none of its own and asks nobody. */
export class DnsStub {
  readonly #names: NameTable
  readonly #limits: DnsLimits
  readonly #rate: DnsRate
  readonly #troubles: DnsTroubles
  readonly #udp = new Set<UdpSocket>()
  readonly #tcp = new Set<StreamSocket>()

  constructor({ names, audit, limits }: DnsOptions) {
    this.#names = names
    this.#limits = { ...LIMITS, ...limits }
    this.#rate = new DnsRate(this.#limits.queriesPerSecond)
    this.#troubles = new DnsTroubles(audit)
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
      this.#troubles.add('rate')
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
    this.#troubles.flush()
  }

  #answer(query: Buffer): Buffer | undefined {
    if (!this.#rate.take()) {
      this.#troubles.add('rate')
      return undefined
    }
    const { reply, trouble, raw } = answerQuery(query, this.#names)
    if (trouble !== undefined) this.#troubles.add(trouble, raw)
    return reply
  }
}

/**
 * When a client has closed before its answer came, the kernel tells so (ECONNREFUSED) at the *next* send, to whomever,
 * and that one is not sent. It is tried again: else one program that asks and leaves would cost every other its answers.
 */
const SEND_TRIES = 4

function send(socket: UdpSocket, reply: Buffer, port: number, address: string, tries: number): void {
  try {
    socket.send(reply, 0, reply.length, port, address, error => {
      if (error && tries > 1) send(socket, reply, port, address, tries - 1)
    })
  } catch {
    // The socket was closed meanwhile, or the source port was forged: lost, as any packet may be.
  }
}

const ignore = (): void => {}

/**
 * Forwards a port of the sandbox's loopback to the host. pen listens on the host's loopback and dials inside for each
 * connection, so the sandbox only answers. pen trusts neither end and does not interpret the bytes.
 */
import { errnoOf, PenError } from '../../base/error.ts'
import { AF } from '../../base/kernel/socket.ts'
import type { Port } from '../../policy/network/port.ts'
import { type Listening, listenLoopback } from '../dial/tcp-connect.ts'
import type { SocketEnd, SocketOwners } from '../netns/socket-owner.ts'
import type { Family } from '../netns/sockets.ts'
import type { BufferBudget } from '../stream/buffer-budget.ts'
import { ByteStream } from '../stream/byte-stream.ts'
import { joinStreams } from '../stream/join-streams.ts'
import type { StreamSocket } from '../stream/stream-socket.ts'
import type { TcpSocket } from '../stream/tcp-socket.ts'

export interface PortPair {
  readonly guest: Port
  /** 0 chooses a free port. */
  readonly host: Port | 0
}

/** State that all forwards of a sandbox share. */
export interface ForwardContext {
  /** Connects to a server on the sandbox's loopback. */
  readonly dial: (port: Port) => Promise<StreamSocket>
  readonly owners: SocketOwners
  readonly held: BufferBudget
  /** The user ids that may connect. */
  readonly users: ReadonlySet<number>
  /** Takes one of the limited connections. False when none is free. */
  enter(): boolean
  leave(): void
}

/** Idle timeout of a half-closed tunnel. */
const HALF_CLOSED_MS = 600_000
const SWEEP_MS = 30_000
/** A tunnel without traffic counts as stalled after this time. */
const STALLED_MS = 60_000
/** A port that is free in one family may be in use in the other. */
const MAX_TRIES = 8

interface Tunnel {
  readonly client: ByteStream
  readonly upstream: ByteStream
  /** The connection of the client, from its point of view. */
  readonly ends: readonly [own: SocketEnd, peer: SocketEnd]
}

export class Forward {
  readonly guest: Port
  readonly host: number
  /** The listening addresses on the host. */
  readonly addresses: readonly string[]
  readonly #context: ForwardContext
  readonly #listening: readonly Listening[]
  readonly #tunnels = new Set<Tunnel>()
  readonly #sweeper: ReturnType<typeof setInterval>
  #isClosed: boolean = false
  /** Connections that were forwarded, and those refused because of their user or a limit. */
  connections = 0
  refused = 0

  /** Accepts nothing before the caller returns to the event loop. */
  constructor({ guest, host }: PortPair, context: ForwardContext) {
    this.guest = guest
    this.#context = context
    this.#listening = listenOn(host, socket => this.#accept(socket))
    this.host = this.#listening[0]?.port ?? host
    this.addresses = ADDRESSES.slice(0, this.#listening.length)
    this.#sweeper = setInterval(() => this.sweep(), SWEEP_MS)
    this.#sweeper.unref()
    if (context.owners.userOf({ address: '127.0.0.1', port: this.host }) === process.geteuid?.()) return
    this.close()
    throw new PenError('BACKEND', {
      what: 'the kernel does not report which user connects, so pen cannot keep other users of this machine out',
      hint: 'sudo modprobe tcp_diag',
    })
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    for (const listener of this.#listening) listener.stop()
    for (const { client, upstream } of this.#tunnels) {
      client.reset()
      upstream.reset()
    }
  }

  #accept(client: TcpSocket): void {
    const { users, owners } = this.#context
    const { local, remote } = client
    const ends = local === undefined || remote === undefined ? undefined : ([remote, local] as const)
    const user = ends === undefined ? undefined : owners.userOf(...ends)
    const isAllowed = !this.#isClosed && user !== undefined && users.has(user)
    if (ends === undefined || !isAllowed || !this.#context.enter()) {
      this.refused++
      client.reset()
      return
    }
    this.connections++
    client.onClosed = () => this.#context.leave()
    void this.#pass(client, ends).catch(() => client.reset())
  }

  async #pass(client: TcpSocket, ends: Tunnel['ends']): Promise<void> {
    const socket = await this.#context.dial(this.guest)
    if (this.#isClosed) {
      socket.reset()
      client.reset()
      return
    }
    const { held } = this.#context
    const tunnel = { client: new ByteStream(client, held), upstream: new ByteStream(socket, held), ends }
    this.#tunnels.add(tunnel)
    await joinStreams(tunnel.client, tunnel.upstream)
    this.#tunnels.delete(tunnel)
  }

  /** Ends abandoned tunnels. Otherwise a server that never closes could use up all connections. */
  sweep(): void {
    const late = performance.now() - HALF_CLOSED_MS
    for (const tunnel of this.#tunnels) {
      const { client, upstream } = tunnel
      const isSilent = Math.max(client.lastActive, upstream.lastActive) < late
      if (isSilent && (client.ended || upstream.ended)) client.reset()
      else if (this.#isAbandoned(tunnel)) {
        client.socket.destroy()
        // Bytes that were sent still arrive inside.
        upstream.socket.destroy()
      }
    }
  }

  /**
   * The program has not only half-closed, as a reader may do: its socket is gone. And all its bytes are forwarded, or the
   * server does not read them.
   */
  #isAbandoned({ client, upstream, ends }: Tunnel): boolean {
    const isOver = client.ended && upstream.buffered === 0
    const isStalled = Math.max(client.lastActive, upstream.lastActive) < performance.now() - STALLED_MS
    return (isOver || isStalled) && this.#context.owners.userOf(...ends) === undefined
  }
}

const ADDRESSES = ['127.0.0.1', '::1'] as const

/** Listens on IPv4, then on IPv6. */
function listenOn(host: number, accepted: (socket: TcpSocket) => void): readonly Listening[] {
  for (let tries = 1; ; tries++) {
    const v4 = listenAt(AF.inet, host, accepted)
    try {
      return [v4, listenAt(AF.inet6, v4.port, accepted)]
    } catch (error) {
      if (NO_IPV6.includes(errnoOf(error) ?? '')) return [v4]
      v4.stop()
      if (host !== 0 || tries === MAX_TRIES) throw error
    }
  }
}

const NO_IPV6 = ['EADDRNOTAVAIL', 'EAFNOSUPPORT']

function listenAt(family: Family, port: number, accepted: (socket: TcpSocket) => void): Listening {
  try {
    return listenLoopback(accepted, family, port)
  } catch (error) {
    throw refusal(error, family === AF.inet ? '127.0.0.1' : '[::1]', port)
  }
}

function refusal(error: unknown, address: string, port: number): unknown {
  const [what, hint] = REFUSALS[errnoOf(error) ?? '']?.(port) ?? []
  if (what === undefined || hint === undefined) return error
  return new PenError('CONNECT', { what, at: `${address}:${port}`, hint, cause: error })
}

const REFUSALS: Readonly<Record<string, (port: number) => readonly [what: string, hint: string]>> = {
  EADDRINUSE: port => [
    `port ${port} of this machine is already in use`,
    'stop the program that listens there, or put another host port before the colon (0 chooses a free one)',
  ],
  EACCES: port => [
    `not allowed to listen on port ${port} of this machine`,
    'put a host port above 1023 before the colon (0 chooses a free one)',
  ],
}

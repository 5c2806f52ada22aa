/**
 * The gateway's part inside a sandbox's network namespace: its listening sockets, held by this process. The namespace has
 * no interface but `lo` and every address in it is local, so whatever a program dials arrives here or nowhere.
 * When this process dies the listeners die with it, and the sandbox has no way out.
 */
import type { Socket as DatagramSocket } from 'node:dgram'
import { close } from '../../base/kernel/descriptor.ts'
import { PROXY_PORT } from '../../protocol/guest-paths.ts'
import { listenTcp } from '../dial/tcp-connect.ts'
import { connectionLimits } from '../stream/connection-limits.ts'
import type { TcpSocket } from '../stream/tcp-socket.ts'
import { type Role, rulesMessage } from './listeners.ts'
import { type DoorLocation, type DoorRootHelper, entryByDescriptor, inNamespace } from './namespace.ts'
import { type DoorSockets, openDoorSockets } from './open.ts'
import { boundDestination, type Destination, originalDestination } from './original-destination.ts'
import { listRefused, type RefusedDatagram } from './refused.ts'

export interface DoorOptions {
  /** The ports of the policy's allow rules. Only used where the kernel cannot map all ports. */
  readonly ports: readonly number[]
  /** Where to open it; without, in a namespace of its own. */
  readonly location?: DoorLocation
}

/** What the gateway does with what arrives. Each is called for one connection, before a byte of it was read. */
export interface DoorHandlers {
  readonly dialled: (socket: TcpSocket, to: Destination) => void
  readonly proxied: (socket: TcpSocket) => void
  readonly queryStream: (socket: TcpSocket) => void
  /** Called once for each socket on which DNS queries arrive, before it receives. */
  readonly queries: (socket: DatagramSocket) => void
  /**
   * A connection that was closed at once: too many are open, or it hung up so long ago that the kernel has forgotten whom it
   * dialled. Bounded by nothing: count, do not log.
   */
  readonly rejected?: (why: 'connections' | 'hung-up') => void
}

export interface Door {
  /** False where the kernel has no nf_tables: refused ports and refused UDP are then refused by the kernel, without a record. */
  readonly recordsRefusals: boolean
  readonly ipv6: boolean
  /** For `PEN_PROXY`: reachable from inside the namespace alone. */
  readonly proxy: { readonly address: '127.0.0.1'; readonly port: number; readonly secret?: string }
  /**
   * How a sandbox is started in the namespace, whoever runs pen: `within(() => spawn([...wrap, engine, …]))`. The engine must make
   * a user namespace of its own and no network namespace; then the sandbox has no power over this one.
   * With `wrap` it is uid 0 of a user namespace around it, in which only the caller's own ids exist.
   */
  readonly wrap: readonly string[]
  within<T>(start: () => T): T
  /** The same command in the namespace and with power over it. Never for what the sandbox chose. */
  enter(argv: readonly string[]): string[]
  /** Begins to accept. Until then connections wait in the kernel. Once only. */
  serve(handlers: DoorHandlers, limits?: { readonly connections: number }): Promise<void>
  /** Every UDP destination refused so far, each once. */
  refusedDatagrams(): Promise<readonly RefusedDatagram[]>
  /** Whatever was refused is known from now on, and nobody is asked any more. */
  settle(): Promise<void>
  /** Gives everything back. Connections that were accepted belong to whoever got them. */
  close(): void
}

/** All of it that needs no namespace: for whoever waits for one. */
export async function warmDoor(): Promise<void> {
  rulesMessage()
  await import('node:dgram')
}

/** Nothing is left behind when it fails. */
export async function openDoor(options: DoorOptions): Promise<Door> {
  const location = options.location ?? { kind: 'new' }
  const opening = openDoorSockets(location, options.ports)
  // Loaded while we wait for the other process anyway.
  const [sockets] = await Promise.all([opening, import('node:dgram')])
  return new OpenDoor(sockets, location.kind === 'by-helper' ? location.helper : undefined)
}

class OpenDoor implements Door {
  readonly recordsRefusals: boolean
  readonly ipv6: boolean
  readonly proxy = { address: '127.0.0.1', port: PROXY_PORT } as const
  readonly wrap: readonly string[]
  readonly #network: number
  readonly #helper: DoorRootHelper | undefined
  readonly #words: readonly string[]
  /** Still bare descriptors; a listener leaves when it becomes a server. */
  readonly #bare: Map<number, Role>
  readonly #close: (() => void)[] = []
  #open = 0
  #settled: readonly RefusedDatagram[] | undefined

  constructor(sockets: DoorSockets, helper: DoorRootHelper | undefined) {
    this.#helper = helper
    this.#bare = new Map(sockets.descriptors.map(([role, fd]) => [fd, role]))
    this.recordsRefusals = sockets.mapped
    this.ipv6 = this.#withRole('dns-datagram6').length > 0
    const { userNamespace } = sockets.entry
    const [network = -1] = this.#withRole('network')
    const [user = -1] = this.#withRole('user')
    this.#network = network
    this.#words = entryByDescriptor(network, user, userNamespace).words
    this.wrap = userNamespace === 'none' ? [] : this.#words
  }

  within<T>(start: () => T): T {
    return this.wrap.length > 0 ? start() : inNamespace(this.#network, start)
  }

  enter(argv: readonly string[]): string[] {
    return [...this.#words, ...argv]
  }

  async serve(handlers: DoorHandlers, limits = { connections: connectionLimits().gateway }): Promise<void> {
    const whereTo = this.recordsRefusals ? originalDestination : boundDestination
    const dialled = (socket: TcpSocket): void => {
      const to = whereTo(socket)
      // It hung up before we looked, or dialled the door itself: there is nowhere to take it.
      if (to !== undefined) handlers.dialled(socket, to)
      else {
        socket.destroy()
        handlers.rejected?.('hung-up')
      }
    }
    const accept = (handle: (socket: TcpSocket) => void) => (socket: TcpSocket) => {
      if (this.#open >= limits.connections) {
        socket.reset()
        handlers.rejected?.('connections')
        return
      }
      this.#open += 1
      socket.onClosed = () => {
        this.#open -= 1
      }
      handle(socket)
    }
    const streams = { dialled, proxy: handlers.proxied, 'dns-stream': handlers.queryStream }
    for (const [role, handle] of Object.entries(streams))
      for (const fd of this.#take(role as keyof typeof streams)) {
        const listening = listenTcp(fd, accept(handle))
        this.#close.push(() => listening.stop())
      }
    await Promise.all(await this.#receive(handlers.queries))
  }

  async #receive(queries: DoorHandlers['queries']): Promise<Promise<void>[]> {
    const { createSocket } = await import('node:dgram')
    const types = { 'dns-datagram4': 'udp4', 'dns-datagram6': 'udp6' } as const
    return Object.entries(types).flatMap(([role, type]) =>
      this.#take(role as keyof typeof types).map(fd => {
        const socket = createSocket(type)
        this.#close.push(() => closeOnce(socket))
        queries(socket)
        return new Promise<void>((resolve, reject) => {
          socket.once('error', reject)
          socket.bind({ fd }, () => {
            socket.off('error', reject)
            resolve()
          })
        })
      }),
    )
  }

  async settle(): Promise<void> {
    this.#settled = await this.refusedDatagrams()
  }

  async refusedDatagrams(): Promise<readonly RefusedDatagram[]> {
    if (this.#settled !== undefined) return this.#settled
    const list = async (rules: number) =>
      // Written by pen itself: the kernel answers nobody who has no power over the namespace.
      (await this.#helper?.listRefused(rules)) as readonly RefusedDatagram[] | undefined
    const lists = this.#withRole('rules').map(async rules => (await list(rules)) ?? listRefused(rules))
    return (await Promise.all(lists)).flat()
  }

  close(): void {
    for (const close of this.#close.splice(0)) close()
    for (const fd of this.#bare.keys()) close(fd)
    this.#bare.clear()
  }

  #withRole(role: Role): number[] {
    return [...this.#bare].filter(([, its]) => its === role).map(([fd]) => fd)
  }

  #take(role: Role): number[] {
    const fds = this.#withRole(role)
    for (const fd of fds) this.#bare.delete(fd)
    return fds
  }
}

/** Whoever answers the queries may have closed it already, which Node calls an error. */
function closeOnce(socket: DatagramSocket): void {
  try {
    socket.close()
  } catch {}
}

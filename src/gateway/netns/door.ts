/**
 * The gateway's listening sockets inside a sandbox's network namespace. This process holds them. The namespace has only
 * `lo`, and every address in it is local, so a dialled connection arrives here or nowhere. When this process dies, the
 * listeners close and the sandbox has no way out.
 */
import type { Socket as DatagramSocket } from 'node:dgram'
import { close } from '../../base/kernel/descriptor.ts'
import { AF, SOL } from '../../base/kernel/socket.ts'
import { tryCall } from '../../base/kernel/system-call.ts'
import { type Address, parseAddress, printAddress } from '../../policy/network/address.ts'
import { type Port, parsePort } from '../../policy/network/port.ts'
import { PROXY_PORT } from '../../protocol/guest-paths.ts'
import { listenTcp } from '../dial/tcp-connect.ts'
import { atMost, connectionLimits } from '../stream/connection-limits.ts'
import type { TcpSocket } from '../stream/tcp-socket.ts'
import type { Role } from './listeners.ts'
import { type DoorLocation, type DoorRootHelper, entryByDescriptor, inNamespace } from './namespace.ts'
import { type DoorSockets, openDoorSockets } from './open.ts'
import { listRefused, type RefusedDatagram } from './refused.ts'

export interface DoorOptions {
  /** Ports of the allow rules. Used only when the kernel cannot redirect all ports. */
  readonly ports: readonly number[]
  /** The namespace of the door. The default is a new one. */
  readonly location?: DoorLocation
}

/** The destination that a program dialled. */
interface Destination {
  readonly address: Address
  readonly port: Port
}

/** Called for each new connection, before any byte of it is read. */
interface DoorHandlers {
  readonly dialled: (socket: TcpSocket, to: Destination) => void
  readonly proxied: (socket: TcpSocket) => void
  readonly queryStream: (socket: TcpSocket) => void
  /** Called once for each DNS socket, before it receives. */
  readonly queries: (socket: DatagramSocket) => void
  /**
   * A connection was closed at once: too many are open, or the client hung up and the kernel no longer knows the
   * destination. Calls are not rate limited, so count them and do not log each.
   */
  readonly rejected?: (why: 'connections' | 'hung-up') => void
}

export interface Door {
  /** False without nf_tables: the kernel then refuses ports and UDP without a record. */
  readonly recordsRefusals: boolean
  readonly ipv6: boolean
  /** The proxy of `PEN_PROXY`. Reachable only from inside the namespace. */
  readonly proxy: { readonly address: '127.0.0.1'; readonly port: number; readonly secret?: string }
  /** Variables that programs need, where the proxy is the only way out. */
  readonly variables?: readonly { readonly name: string; readonly value: string; readonly secret: true }[]
  /**
   * Starts a sandbox in the namespace, with or without root: `within(() => spawn([...wrap, engine, …]))`. The engine must
   * create its own user namespace and no network namespace, so that the sandbox has no capabilities over this one. With
   * `wrap`, the engine is uid 0 of an outer user namespace that maps only the caller's ids.
   */
  readonly wrap: readonly string[]
  within<T>(start: () => T): T
  /** The command to run in the namespace with capabilities over it. Never for a command that the sandbox chose. */
  enter(argv: readonly string[]): string[]
  /** Starts to accept. Until then connections wait in the kernel. Called once. */
  serve(handlers: DoorHandlers, limits?: { readonly connections: number }): Promise<void>
  /** Every UDP destination that was refused so far. */
  refusedDatagrams(): Promise<readonly RefusedDatagram[]>
  /** Reads the refused destinations a last time. Later calls return this list. */
  settle(): Promise<void>
  /** Closes all listeners. Accepted connections stay open. */
  close(): void
}

/** Leaves nothing open when it fails. */
export async function openDoor(options: DoorOptions): Promise<Door> {
  const location = options.location ?? { kind: 'new' }
  const opening = openDoorSockets(location, options.ports)
  // Loads it while the other process runs.
  process.getBuiltinModule('node:dgram')
  return new OpenDoor(await opening, location.kind === 'by-helper' ? location.helper : undefined)
}

class OpenDoor implements Door {
  readonly recordsRefusals: boolean
  readonly ipv6: boolean
  readonly proxy = { address: '127.0.0.1', port: PROXY_PORT } as const
  readonly wrap: readonly string[]
  readonly #network: number
  readonly #helper: DoorRootHelper | undefined
  readonly #prefix: readonly string[]
  /** Descriptors that no server owns yet. */
  readonly #unowned: Map<number, Role>
  readonly #close: (() => void)[] = []
  #settled: readonly RefusedDatagram[] | undefined

  constructor(sockets: DoorSockets, helper: DoorRootHelper | undefined) {
    this.#helper = helper
    this.#unowned = new Map(sockets.descriptors.map(([role, fd]) => [fd, role]))
    this.recordsRefusals = sockets.mapped
    this.ipv6 = this.#withRole('dns-datagram6').length > 0
    const { userNamespace } = sockets.entry
    const [network = -1] = this.#withRole('network')
    const [user = -1] = this.#withRole('user')
    this.#network = network
    this.#prefix = entryByDescriptor(network, user, userNamespace)
    this.wrap = userNamespace === 'none' ? [] : this.#prefix
  }

  within<T>(start: () => T): T {
    return this.wrap.length > 0 ? start() : inNamespace(this.#network, start)
  }

  enter(argv: readonly string[]): string[] {
    return [...this.#prefix, ...argv]
  }

  async serve(handlers: DoorHandlers, limits = { connections: connectionLimits().gateway }): Promise<void> {
    const destinationOf = this.recordsRefusals ? originalDestination : boundDestination
    const dialled = (socket: TcpSocket): void => {
      const to = destinationOf(socket)
      // Undefined when the client hung up already, or dialled the door itself.
      if (to !== undefined) handlers.dialled(socket, to)
      else {
        socket.destroy()
        handlers.rejected?.('hung-up')
      }
    }
    const accept = atMost(limits.connections, () => handlers.rejected?.('connections'))
    const streams = { dialled, proxy: handlers.proxied, 'dns-stream': handlers.queryStream }
    for (const [role, handle] of Object.entries(streams))
      for (const fd of this.#take(role as keyof typeof streams)) {
        const listening = listenTcp(fd, accept(handle))
        this.#close.push(() => listening.stop())
      }
    await this.#receive(handlers.queries)
  }

  async #receive(queries: DoorHandlers['queries']): Promise<void> {
    const { createSocket } = process.getBuiltinModule('node:dgram')
    const types = { 'dns-datagram4': 'udp4', 'dns-datagram6': 'udp6' } as const
    const bound = Object.entries(types).flatMap(([role, type]) =>
      this.#take(role as keyof typeof types).map(fd => {
        const socket = createSocket(type)
        this.#close.push(() => socket.close())
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
    await Promise.all(bound)
  }

  async settle(): Promise<void> {
    this.#settled = await this.refusedDatagrams()
  }

  async refusedDatagrams(): Promise<readonly RefusedDatagram[]> {
    if (this.#settled !== undefined) return this.#settled
    const [rules] = this.#withRole('rules')
    if (rules === undefined) return []
    // The root helper is pen itself. The kernel answers only a process with capabilities over the namespace.
    const listed = (await this.#helper?.listRefused(rules)) as readonly RefusedDatagram[] | undefined
    return listed ?? listRefused(rules)
  }

  close(): void {
    for (const close of this.#close.splice(0)) close()
    for (const fd of this.#unowned.keys()) close(fd)
    this.#unowned.clear()
  }

  #withRole(role: Role): number[] {
    return [...this.#unowned].filter(([, its]) => its === role).map(([fd]) => fd)
  }

  #take(role: Role): number[] {
    const fds = this.#withRole(role)
    for (const fd of fds) this.#unowned.delete(fd)
    return fds
  }
}

const SO_ORIGINAL_DST = 80

/**
 * The destination before the rules redirected it. The kernel reports it; a sandbox cannot forge it.
 * Undefined when the kernel knows no destination: the socket is closed, or the program dialled the door's own port on
 * loopback. The caller then closes the connection.
 */
function originalDestination(socket: TcpSocket): Destination | undefined {
  const fd = socket.descriptor
  if (fd === undefined) return undefined
  // Trying both is cheaper than asking for the family: a socket of the other family returns an error.
  return ask(fd, SOL.ip, AF.inet) ?? ask(fd, SOL.ipv6, AF.inet6)
}

/** For a door without rules: the local address of the socket is the dialled one. */
function boundDestination(socket: TcpSocket): Destination | undefined {
  const { local } = socket
  const address = parseAddress(local?.address ?? '')
  const port = parsePort(String(local?.port))
  return address.ok && port.ok ? { address: address.value, port: port.value } : undefined
}

// One buffer for all calls, because the call and the read of its answer are never interleaved.
const answer = new Uint8Array(28)
const size = new Uint32Array(1)

function ask(fd: number, level: number, family: number): Destination | undefined {
  size[0] = answer.length
  if (tryCall('getsockopt', fd, level, SO_ORIGINAL_DST, answer, size) !== 0) return undefined
  if (new DataView(answer.buffer).getUint16(0, true) !== family) return undefined
  const port = parsePort(String(((answer[2] ?? 0) << 8) | (answer[3] ?? 0)))
  if (!port.ok) return undefined
  const bytes = family === AF.inet ? answer.subarray(4, 8) : answer.subarray(8, 24)
  return { address: printAddress([...bytes]), port: port.value }
}

/** Creates TCP connections: accepts them on a listening descriptor, or dials. */
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { close } from '../../base/kernel/descriptor.ts'
import { AF, SOL, socketOption } from '../../base/kernel/socket.ts'
import { systemCall, tryCall } from '../../base/kernel/system-call.ts'
import { listenInTurns, type Stoppable } from '../../base/listen-in-turns.ts'
import { type Address, addressBytes } from '../../policy/network/address.ts'
import type { Port } from '../../policy/network/port.ts'
import { type Family, unconnected } from '../netns/sockets.ts'
import { connectionState, type NativeSocket, TCP_STATE, TcpSocket } from '../stream/tcp-socket.ts'

const SO_REUSEADDR = 2
const SO_ERROR = 4
const IPV6_V6ONLY = 26
const LOOPBACK_V6 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]

export interface Listening {
  readonly port: number
  /** Accepted connections stay open. */
  stop(): void
}

type Accept = (socket: TcpSocket) => void

const F_DUPFD_CLOEXEC = 1030
const BACKLOG = 512

/** Takes ownership of a listening descriptor. */
export function listenTcp(fd: number, accepted: Accept): Listening {
  let isOpen: boolean = true
  const listener = listenInTurns(took => {
    const copy = systemCall('fcntl', fd, F_DUPFD_CLOEXEC, 0)
    return acceptFrom(copy, socket => {
      took()
      accepted(socket)
    })
  })
  return {
    port: portOf(fd),
    stop: () => {
      listener.stop()
      if (isOpen) close(fd)
      isOpen = false
    },
  }
}

/** Listens on loopback. Port 0 chooses a free port. */
export function listenLoopback(accepted: Accept, family: Family = AF.inet, port = 0): Listening {
  const fd = unconnected(family)
  try {
    if (family === AF.inet6) switchOn(fd, SOL.ipv6, IPV6_V6ONLY)
    // Allows ports with connections in TIME_WAIT. A second listener is still refused.
    if (port !== 0) switchOn(fd, SOL.socket, SO_REUSEADDR)
    const name = socketName(family, family === AF.inet ? [127, 0, 0, 1] : LOOPBACK_V6, port)
    systemCall('bind', fd, name, name.length)
    systemCall('listen', fd, BACKLOG)
  } catch (error) {
    close(fd)
    throw error
  }
  return listenTcp(fd, accepted)
}

const switchOn = (fd: number, level: number, option: number): number =>
  systemCall('setsockopt', fd, level, option, new Int32Array([1]), 4)

/** `struct sockaddr_in`, or `sockaddr_in6`. */
function socketName(family: Family, address: ArrayLike<number>, port: number): Uint8Array {
  const name = new Uint8Array(family === AF.inet ? 16 : 28)
  new DataView(name.buffer).setUint16(0, family, true)
  new DataView(name.buffer).setUint16(2, port)
  name.set(address, family === AF.inet ? 4 : 8)
  return name
}

function portOf(fd: number): number {
  const name = new Uint8Array(28)
  systemCall('getsockname', fd, name, new Uint32Array([name.length]))
  return new DataView(name.buffer).getUint16(2)
}

/** Bun sets TCP_NODELAY itself. */
function acceptFrom(fd: number, accepted: Accept): Stoppable {
  const options = {
    fd,
    allowHalfOpen: true,
    socket: {
      ...TcpSocket.handlers,
      open(native: NativeSocket) {
        native.data = new TcpSocket()
        TcpSocket.handlers.open(native)
        accepted(native.data)
      },
    },
  }
  // Bun's types declare `fd` only for `connect`.
  const listener = Bun.listen(options as unknown as Bun.TCPSocketListenOptions<TcpSocket>)
  return { stop: () => listener.stop() }
}

/** `done` is called once, asynchronously: with undefined when connected, else with the error. */
export function connectTcp(
  address: Address,
  port: Port,
  done: (error: unknown) => void,
  /** A socket of another network namespace. The connection takes ownership. */
  made?: number,
): TcpSocket {
  const socket = new TcpSocket()
  try {
    const { fd, isConnected } = startConnecting(address, port, made)
    if (!isConnected) socket.onConnected = done
    const options = { fd, allowHalfOpen: true, data: socket, socket: TcpSocket.handlers }
    Bun.connect(options as unknown as Bun.UnixSocketOptions<TcpSocket>).catch(() => undefined)
    if (isConnected) queueMicrotask(() => done(undefined))
  } catch (error) {
    queueMicrotask(() => done(error))
  }
  return socket
}

/**
 * Calls `connect` itself, because a dial by Bun cannot be cancelled. On loopback the connection is often established when
 * the call returns.
 */
function startConnecting(
  address: Address,
  port: Port,
  made: number | undefined,
): { fd: number; isConnected: boolean } {
  const bytes = addressBytes(address)
  const family = bytes.length === 4 ? AF.inet : AF.inet6
  const name = socketName(family, bytes, port)
  const fd = made ?? unconnected(family)
  try {
    const errno = -tryCall('connect', fd, name, name.length)
    const state = connectionState(fd)
    const isConnected = state === TCP_STATE.established
    if (isConnected || state === TCP_STATE.synSent) return { fd, isConnected }
    // A refusal may also have arrived already, after the call returned EINPROGRESS.
    const failure = socketOption(fd, SOL.socket, SO_ERROR)
    throw new CallFailed('connect', failure === 0 ? errno : failure)
  } catch (error) {
    close(fd)
    throw error
  }
}

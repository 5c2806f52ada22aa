/** Creates TCP connections: accepts them on a listening descriptor, or dials. */
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { close, copyOf } from '../../base/kernel/descriptor.ts'
import { AF, SOCK, SOL, socketOption } from '../../base/kernel/socket.ts'
import { systemCall, tryCall } from '../../base/kernel/system-call.ts'
import { listenInTurns, type Stoppable } from '../../base/listen-in-turns.ts'
import { type Address, addressBytes } from '../../policy/network/address.ts'
import type { Port } from '../../policy/network/port.ts'
import { bound, type Family, loopbackOf, socketName, unconnected } from '../netns/sockets.ts'
import { connectionState, type NativeSocket, TCP_STATE, TcpSocket } from '../stream/tcp-socket.ts'

const SO_ERROR = 4

export interface Listening {
  readonly port: number
  /** Accepted connections stay open. */
  stop(): void
}

type Accept = (socket: TcpSocket) => void

const BACKLOG = 512

/** Takes ownership of a listening descriptor. */
export function listenTcp(fd: number, accepted: Accept): Listening {
  let isOpen: boolean = true
  const listener = listenInTurns(took =>
    acceptFrom(copyOf(fd), socket => {
      took()
      accepted(socket)
    }),
  )
  return {
    port: portOf(fd),
    stop: () => {
      listener.stop()
      if (isOpen) close(fd)
      isOpen = false
    },
  }
}

/** A socket that listens on loopback. Port 0 chooses a free port. */
export const boundToLoopback = (family: Family, port: number): number =>
  bound({
    family,
    type: SOCK.stream | SOCK.nonblock,
    address: loopbackOf(family),
    port,
    backlog: BACKLOG,
    reuse: port !== 0,
  })

export const listenLoopback = (accepted: Accept, family: Family = AF.inet, port = 0): Listening =>
  listenTcp(boundToLoopback(family, port), accepted)

export function portOf(fd: number): number {
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

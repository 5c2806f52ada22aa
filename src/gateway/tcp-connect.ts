/** TCP connections come to be: accepted where a descriptor listens, or dialled. */
import { ptr } from 'bun:ffi'
import { type Address, addressBytes } from '../policy/address.ts'
import type { Port } from '../policy/port.ts'
import { AF, CallFailed, lastError, libc, SOCK, SOL, socketOption, succeeded } from './door-libc.ts'
import { connectionState, type NativeSocket, TCP_STATE, TcpSocket } from './tcp-socket.ts'

const SO_ERROR = 4

export interface Listening {
  readonly port: number
  /** Those that were accepted stay. */
  stop(): void
}

/** A descriptor that listens already, which is the listener's from now on; or an address, at a port that is free. */
type Where = { readonly fd: number } | { readonly hostname: string; readonly port: 0 }

/** The runtime itself sends small pieces at once. */
export function listenTcp(where: Where, accepted: (socket: TcpSocket) => void): Listening {
  const options = {
    ...where,
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
  // Its types know of descriptors for `connect` alone.
  const listener = Bun.listen(options as unknown as Bun.TCPSocketListenOptions<TcpSocket>)
  return { port: listener.port, stop: () => listener.stop() }
}

/** `done` is called once, later: with nothing when it is connected, or with what went wrong. */
export function connectTcp(address: Address, port: Port, done: (error: unknown) => void): TcpSocket {
  const socket = new TcpSocket()
  try {
    const { fd, isConnected } = startConnecting(address, port)
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
 * Begun here rather than by the runtime, whose own way cannot be given up before it has come to an end. On this machine it
 * has often finished when the call returns.
 */
function startConnecting(address: Address, port: Port): { fd: number; isConnected: boolean } {
  const bytes = addressBytes(address)
  const family = bytes.length === 4 ? AF.inet : AF.inet6
  const name = new Uint8Array(family === AF.inet ? 16 : 28)
  new DataView(name.buffer).setUint16(0, family, true)
  new DataView(name.buffer).setUint16(2, port)
  name.set(bytes, family === AF.inet ? 4 : 8)
  const fd = succeeded('socket', libc().socket(family, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0))
  try {
    const errno = libc().connect(fd, ptr(name), name.length) === 0 ? 0 : lastError()
    const state = connectionState(fd)
    const isConnected = state === TCP_STATE.established
    if (isConnected || state === TCP_STATE.synSent) return { fd, isConnected }
    // So has a refusal; the call itself said "in progress".
    const failure = socketOption(fd, SOL.socket, SO_ERROR)
    throw new CallFailed('connect', failure === 0 ? errno : failure)
  } catch (error) {
    libc().close(fd)
    throw error
  }
}

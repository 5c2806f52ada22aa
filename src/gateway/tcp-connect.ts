/** TCP connections come to be: accepted where a descriptor listens, or dialled. */
import { ptr } from 'bun:ffi'
import { type Address, addressBytes } from '../policy/address.ts'
import type { Port } from '../policy/port.ts'
import { AF, CallFailed, libc, SOCK, SOL, socketOption, succeeded } from './door-libc.ts'
import { connectionState, IPPROTO_TCP, type NativeSocket, TCP_STATE, TcpSocket } from './tcp-socket.ts'

const TCP_NODELAY = 1
const SO_ERROR = 4
const ON = new Int32Array([1])

export interface Listening {
  /** Those that were accepted stay. */
  stop(): void
}

/** On a descriptor that listens already, which is the listener's from now on. */
export function listenTcp(fd: number, accepted: (socket: TcpSocket) => void): Listening {
  const options = {
    fd,
    allowHalfOpen: true,
    socket: {
      ...TcpSocket.handlers,
      open(native: NativeSocket) {
        native.data = new TcpSocket()
        native.setNoDelay(true)
        TcpSocket.handlers.open(native)
        accepted(native.data)
      },
    },
  }
  // Its types know of descriptors for `connect` alone.
  const listener = Bun.listen(options as unknown as Bun.TCPSocketListenOptions<TcpSocket>)
  return { stop: () => listener.stop() }
}

/** `done` is called once, later: with nothing when it is connected, or with what went wrong. */
export function connectTcp(address: Address, port: Port, done: (error: unknown) => void): TcpSocket {
  const socket = new TcpSocket()
  try {
    const fd = startConnecting(address, port)
    socket.onConnected = done
    const options = { fd, allowHalfOpen: true, data: socket, socket: TcpSocket.handlers }
    Bun.connect(options as unknown as Bun.UnixSocketOptions<TcpSocket>).catch(() => undefined)
    socket.checkConnected()
  } catch (error) {
    queueMicrotask(() => done(error))
  }
  return socket
}

/** Begun here rather than by the runtime, whose own way cannot be given up before it has come to an end. */
function startConnecting(address: Address, port: Port): number {
  const bytes = addressBytes(address)
  const family = bytes.length === 4 ? AF.inet : AF.inet6
  const name = new Uint8Array(family === AF.inet ? 16 : 28)
  new DataView(name.buffer).setUint16(0, family, true)
  new DataView(name.buffer).setUint16(2, port)
  name.set(bytes, family === AF.inet ? 4 : 8)
  const fd = succeeded('socket', libc().socket(family, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0))
  try {
    libc().setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, ptr(ON), 4)
    const result = libc().connect(fd, ptr(name), name.length)
    const state = connectionState(fd)
    if (state === TCP_STATE.synSent || state === TCP_STATE.established) return fd
    // On this machine a refusal is there before anybody waits for it; the call itself said "in progress".
    const failure = socketOption(fd, SOL.socket, SO_ERROR)
    if (failure !== 0) throw new CallFailed('connect', failure)
    return succeeded('connect', Math.min(result, -1))
  } catch (error) {
    libc().close(fd)
    throw error
  }
}

/** A listener on loopback whose connections are the gateway's own kind of socket. */
import { ptr } from 'bun:ffi'
import { AF, libc, SOCK, succeeded } from '../../src/gateway/door-libc.ts'
import { type Listening, listenTcp } from '../../src/gateway/tcp-connect.ts'
import type { TcpSocket } from '../../src/gateway/tcp-socket.ts'

export interface Listener extends Listening {
  readonly port: number
}

export function listenHere(accepted: (socket: TcpSocket) => void): Listener {
  const fd = succeeded('socket', libc().socket(AF.inet, SOCK.stream | SOCK.cloexec, 0))
  const name = new Uint8Array([AF.inet, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
  succeeded('bind', libc().bind(fd, ptr(name), name.length))
  succeeded('listen', libc().listen(fd, 512))
  const size = new Uint32Array([name.length])
  succeeded('getsockname', libc().getsockname(fd, ptr(name), ptr(size)))
  return { ...listenTcp({ fd }, accepted), port: new DataView(name.buffer).getUint16(2) }
}

/** What a test that only answers wants to hear. */
export const silent = { data: () => {}, end: () => {}, drain: () => {}, close: () => {} }

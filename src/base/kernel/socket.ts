/** Sockets without the runtime's event loop. */
import { close, O_CLOEXEC } from './descriptor.ts'
import { cString, systemCall } from './system-call.ts'

export const AF = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const
export const SOCK = {
  stream: 1,
  dgram: 2,
  raw: 3,
  seqpacket: 5,
  nonblock: 0o4000,
  cloexec: O_CLOEXEC,
} as const
export const SOL = { socket: 1, ip: 0, ipv6: 41 } as const
export const MSG = { dontWait: 0x40, noSignal: 0x4000 } as const

/** The longest path of a Unix socket, including the closing NUL. */
const LONGEST_PATH = 108

/** `struct sockaddr_un` */
export function unixName(path: string): Uint8Array {
  const bytes = cString(path)
  if (bytes.length > LONGEST_PATH) throw new Error(`the path of a socket is too long: ${path}`)
  return Buffer.concat([new Uint8Array(new Uint16Array([AF.unix]).buffer), bytes])
}

/** Two connected stream sockets. */
export function socketPair(type: number = SOCK.stream): readonly [number, number] {
  const ends = new Int32Array(2)
  systemCall('socketpair', AF.unix, type | SOCK.cloexec, 0, ends)
  return [ends[0] ?? -1, ends[1] ?? -1]
}

/** Listens at a path. The runtime's own listener would remove the path when it pauses. */
export function listenAtPath(path: string, backlog: number, type: number = SOCK.stream): number {
  const fd = systemCall('socket', AF.unix, type | SOCK.nonblock | SOCK.cloexec, 0)
  try {
    const name = unixName(path)
    systemCall('bind', fd, name, name.length)
    systemCall('listen', fd, backlog)
    return fd
  } catch (error) {
    close(fd)
    throw error
  }
}

/** A socket option that is one number, as `getsockopt(2)` returns it. */
export function socketOption(fd: number, level: number, name: number): number {
  const value = new Int32Array(1)
  systemCall('getsockopt', fd, level, name, value, new Uint32Array([4]))
  return value[0] ?? 0
}

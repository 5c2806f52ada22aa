/**
 * The few calls of the C library that neither Node nor Bun offers: opening sockets before there is an event loop,
 * handing descriptors to another process, and asking where a connection was really going.
 */
import { ptr, read } from 'bun:ffi'
import { cLibrary } from './c-library.ts'

export const libc = cLibrary({
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  socketpair: { args: ['i32', 'i32', 'i32', 'ptr'], returns: 'i32' },
  connect: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  listen: { args: ['i32', 'i32'], returns: 'i32' },
  accept4: { args: ['i32', 'ptr', 'ptr', 'i32'], returns: 'i32' },
  getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
  getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  ioctl: { args: ['i32', 'u64', 'ptr'], returns: 'i32' },
  send: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
  recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
  sendmsg: { args: ['i32', 'ptr', 'i32'], returns: 'i64' },
  recvmsg: { args: ['i32', 'ptr', 'i32'], returns: 'i64' },
  unshare: { args: ['i32'], returns: 'i32' },
  setns: { args: ['i32', 'i32'], returns: 'i32' },
  fchdir: { args: ['i32'], returns: 'i32' },
  chroot: { args: ['ptr'], returns: 'i32' },
  open: { args: ['ptr', 'i32'], returns: 'i32' },
  close: { args: ['i32'], returns: 'i32' },
  fcntl: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  __errno_location: { args: [], returns: 'ptr' },
})

const ERRNO: Readonly<Record<number, string>> = {
  1: 'EPERM',
  2: 'ENOENT',
  13: 'EACCES',
  17: 'EEXIST',
  19: 'ENODEV',
  22: 'EINVAL',
  23: 'ENFILE',
  24: 'EMFILE',
  32: 'EPIPE',
  92: 'ENOPROTOOPT',
  93: 'EPROTONOSUPPORT',
  95: 'EOPNOTSUPP',
  97: 'EAFNOSUPPORT',
  98: 'EADDRINUSE',
  99: 'EADDRNOTAVAIL',
  101: 'ENETUNREACH',
  110: 'ETIMEDOUT',
  111: 'ECONNREFUSED',
  113: 'EHOSTUNREACH',
}

/** A call of the C library that failed, named as Node names its own. */
export class CallFailed extends Error {
  readonly code: string

  constructor(call: string, errno: number) {
    const code = ERRNO[errno] ?? `E${errno}`
    super(`${call}: ${code}`)
    this.code = code
  }
}

/** The result, or an error that names the call. To be used around the call itself. */
export function succeeded(call: string, result: number | bigint): number {
  if (result >= 0) return Number(result)
  throw new CallFailed(call, lastError())
}

/** errno. To be asked at once: it does not keep. */
export function lastError(): number {
  const at = libc().__errno_location()
  return at === null ? 0 : read.i32(at, 0)
}

export const AF = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const
export const SOCK = {
  stream: 1,
  dgram: 2,
  raw: 3,
  seqpacket: 5,
  nonblock: 0o4000,
  cloexec: 0o2000000,
} as const
export const SOL = { socket: 1, ip: 0, ipv6: 41 } as const

const O_CLOEXEC = 0o2000000

/** Without Node's checks and its event loop: for namespaces, which are no files to read. */
export function openPath(path: string): number {
  return succeeded(`open ${path}`, libc().open(ptr(Buffer.from(`${path}\0`)), O_CLOEXEC))
}

/** A number that sockets can be asked for, as `getsockopt(2)` has it. */
export function socketOption(fd: number, level: number, name: number): number {
  const value = new Int32Array(1)
  const size = new Uint32Array([4])
  succeeded('getsockopt', libc().getsockopt(fd, level, name, ptr(value), ptr(size)))
  return value[0] ?? 0
}

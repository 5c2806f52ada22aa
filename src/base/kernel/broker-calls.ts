/** The system calls that the broker needs and Bun has no name for. Errors carry their names, as those of node:fs do. */

import { ptr, read } from 'bun:ffi'
import { closeSync } from 'node:fs'
import { cLibrary } from './c-library.ts'

const libc = cLibrary({
  syscall: { args: ['i64', 'i64', 'u64', 'u64', 'u64', 'u64'], returns: 'i64' },
  __errno_location: { args: [], returns: 'ptr' },
})

const NAMES: Readonly<Record<number, string>> = {
  1: 'EPERM',
  2: 'ENOENT',
  11: 'EAGAIN',
  13: 'EACCES',
  17: 'EEXIST',
  18: 'EXDEV',
  20: 'ENOTDIR',
  22: 'EINVAL',
  24: 'EMFILE',
  28: 'ENOSPC',
  30: 'EROFS',
  31: 'EMLINK',
  36: 'ENAMETOOLONG',
  38: 'ENOSYS',
  40: 'ELOOP',
}

type Argument = number | Uint8Array

function call(name: string, number: number, ...args: readonly Argument[]): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = args.map(one => (typeof one === 'number' ? one : ptr(one)))
  const result = Number(libc().syscall(number, a, b, c, d, e))
  if (result >= 0) return result
  const at = libc().__errno_location()
  const errno = at === null ? 0 : read.i32(at, 0)
  const code = NAMES[errno] ?? `E${errno}`
  throw Object.assign(new Error(`${name} failed with ${code}`), { code })
}

const cString = (text: string): Uint8Array => new TextEncoder().encode(`${text}\0`)

const OPENAT2 = 437

/** `resolve` are RESOLVE_ flags. */
export function openat2(dir: number, path: string, flags: number, resolve: number): number {
  // struct open_how { u64 flags, mode, resolve }; O_CLOEXEC always.
  const how = new BigUint64Array([BigInt(flags | 0o2000000), 0n, BigInt(resolve)])
  return call('openat2', OPENAT2, dir, cString(path), new Uint8Array(how.buffer), how.byteLength)
}

const LINKAT = process.arch === 'arm64' ? 37 : 265
const AT_FDCWD = -100
const AT_SYMLINK_FOLLOW = 0x400

/** Gives an open file that has no name its first one. */
export function nameFile(fd: number, dir: number, name: string): void {
  call('linkat', LINKAT, AT_FDCWD, cString(`/proc/self/fd/${fd}`), dir, cString(name), AT_SYMLINK_FOLLOW)
}

const [SOCKET, BIND, LISTEN, FCNTL] = process.arch === 'arm64' ? [198, 200, 201, 25] : [41, 49, 50, 72]
const AF_UNIX = 1
const SOCK_STREAM_NONBLOCK_CLOEXEC = 0o2004001
const F_DUPFD_CLOEXEC = 1030

/** A socket of the kernel's that listens at a path: the runtime's own takes the path away when it stops for a moment. */
export function listenAtPath(path: string, backlog: number): number {
  const fd = call('socket', SOCKET, AF_UNIX, SOCK_STREAM_NONBLOCK_CLOEXEC, 0)
  try {
    const address = Buffer.concat([new Uint8Array(new Uint16Array([AF_UNIX]).buffer), cString(path)])
    if (address.length > 110) throw new Error('a path that is too long for a socket')
    call('bind', BIND, fd, address, address.length)
    call('listen', LISTEN, fd, backlog)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

export const copyOf = (fd: number): number => call('fcntl', FCNTL, fd, F_DUPFD_CLOEXEC, 0)

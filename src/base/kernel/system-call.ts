/** The few system calls that Bun has no name for. Each returns the kernel's answer or throws with its errno. */
import { type Pointer, ptr, read } from 'bun:ffi'
import { closeSync } from 'node:fs'
import { PenError } from '../error.ts'
import { cLibrary } from './c-library.ts'

const libc = cLibrary({
  syscall: { args: ['i64', 'u64', 'u64', 'u64', 'u64', 'u64'], returns: 'i64' },
  __errno_location: { args: [], returns: 'ptr' },
  pipe2: { args: ['ptr', 'i32'], returns: 'i32' },
})

export class SystemCallError extends Error {
  readonly errno: number
  constructor(call: string, errno: number) {
    super(`${call} failed with errno ${errno}`)
    this.errno = errno
  }
}

type Argument = number | bigint | Pointer | Uint8Array | null

/** One system call. Buffers are passed by address and must stay alive until it returns, which they do. */
export function systemCall(name: string, number: number, ...args: readonly Argument[]): number {
  const { syscall, __errno_location } = libc()
  const raw = [0, 1, 2, 3, 4].map(i => word(args[i] ?? 0))
  const result = Number(syscall(number, raw[0] ?? 0, raw[1] ?? 0, raw[2] ?? 0, raw[3] ?? 0, raw[4] ?? 0))
  if (result >= 0) return result
  const at = __errno_location()
  throw new SystemCallError(name, at === null ? 0 : read.i32(at, 0))
}

const word = (argument: Argument): number | bigint =>
  argument instanceof Uint8Array ? ptr(argument) : argument === null ? 0 : argument

const encoder = new TextEncoder()

/** A text for the kernel: its bytes and the closing NUL. */
export const cString = (text: string): Uint8Array => encoder.encode(`${text}\0`)

/** A pipe that no other program inherits by accident: [read end, write end]. */
export function pipe(): readonly [number, number] {
  const ends = new Int32Array(2)
  if (libc().pipe2(ptr(ends), 0o2000000) !== 0)
    throw new PenError('LIMIT', {
      what: 'pen may not open as many files as it needs',
      hint: 'raise the limit of open files: ulimit -n 1024',
    })
  return [ends[0] ?? -1, ends[1] ?? -1]
}

/** Two ends of one stream, which no other program inherits by accident. */
export function socketPair(): readonly [number, number] {
  const SOCKETPAIR = process.arch === 'arm64' ? 199 : 53
  const AF_UNIX = 1
  const SOCK_STREAM_CLOEXEC = 1 | 0o2000000
  const ends = new Int32Array(2)
  systemCall('socketpair', SOCKETPAIR, AF_UNIX, SOCK_STREAM_CLOEXEC, 0, new Uint8Array(ends.buffer))
  return [ends[0] ?? -1, ends[1] ?? -1]
}

/** A file in memory, without a name on any disk. */
export function memoryFile(): number {
  const MEMFD_CREATE = process.arch === 'arm64' ? 279 : 319
  return systemCall('memfd_create', MEMFD_CREATE, cString('pen'), 1 /* MFD_CLOEXEC */)
}

/** What is written to `number` from now on goes where `fd` leads. */
export function putInPlaceOf(fd: number, number: number): void {
  const DUP3 = process.arch === 'arm64' ? 24 : 292
  systemCall('dup3', DUP3, fd, number)
}

const POLLIN = 1
const POLLOUT = 4

/** Whether the descriptor is ready, now or within so long. Nothing else of this process runs meanwhile. */
function isReady(fd: number, event: number, millis: number): boolean {
  const PPOLL = process.arch === 'arm64' ? 73 : 271
  const asked = new Uint8Array(Int32Array.of(fd, event).buffer)
  const time = new Uint8Array(new BigInt64Array([0n, BigInt(millis * 1e6)]).buffer)
  return systemCall('ppoll', PPOLL, asked, 1, time, null) > 0
}

/** Until the process has ended, or for so long. It need not be a child of ours. */
export function awaitEnd(pid: number, millis: number): void {
  const PIDFD_OPEN = 434
  let fd: number | undefined
  try {
    fd = systemCall('pidfd_open', PIDFD_OPEN, pid, 0)
    isReady(fd, POLLIN, millis)
  } catch {
    // Gone already, or a signal came first.
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** Whether whoever writes a line there need not wait. */
export function takesNow(fd: number): boolean {
  try {
    return isReady(fd, POLLOUT, 0)
  } catch {
    return false
  }
}

const RLIMIT_CORE = 4

/**
 * For this process and all that it starts from now on. One byte, not none: where the host gives cores to a program of its own
 * (`core_pattern` with a pipe), the kernel takes no notice of the limit, except of exactly this one.
 */
export function leaveNoCore(): void {
  const PRLIMIT64 = process.arch === 'arm64' ? 261 : 302
  try {
    systemCall('prlimit64', PRLIMIT64, 0, RLIMIT_CORE, new Uint8Array(new BigUint64Array([1n, 1n]).buffer))
  } catch {
    // Less than that is in force already, and may not be raised.
  }
}

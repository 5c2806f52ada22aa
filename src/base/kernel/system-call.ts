/**
 * System calls of Linux that neither Node nor Bun offers. All of pen, on the host and inside a sandbox, makes them here:
 * one table of numbers per architecture, one error class.
 */
import { type Pointer, ptr, read } from 'bun:ffi'
import { cLibrary } from './c-library.ts'
import { CallFailed } from './call-failed.ts'

/** From 424 on, the numbers are the same on every architecture. */
const ALIKE = {
  open_tree: 428,
  move_mount: 429,
  pidfd_open: 434,
  close_range: 436,
  openat2: 437,
  mount_setattr: 442,
  landlock_create_ruleset: 444,
  landlock_add_rule: 445,
  landlock_restrict_self: 446,
} as const

const X64 = {
  ...ALIKE,
  read: 0,
  write: 1,
  close: 3,
  lseek: 8,
  rt_sigaction: 13,
  rt_sigprocmask: 14,
  ioctl: 16,
  socket: 41,
  connect: 42,
  sendto: 44,
  recvfrom: 45,
  sendmsg: 46,
  recvmsg: 47,
  bind: 49,
  listen: 50,
  getsockname: 51,
  getpeername: 52,
  socketpair: 53,
  setsockopt: 54,
  getsockopt: 55,
  execve: 59,
  wait4: 61,
  fcntl: 72,
  fchdir: 81,
  setgroups: 116,
  getpgid: 121,
  setfsuid: 122,
  setfsgid: 123,
  capget: 125,
  capset: 126,
  prctl: 157,
  chroot: 161,
  mount: 165,
  setxattr: 188,
  getxattr: 191,
  listxattr: 194,
  sched_setaffinity: 203,
  sched_getaffinity: 204,
  getdents64: 217,
  clock_settime: 227,
  waitid: 247,
  inotify_add_watch: 254,
  inotify_rm_watch: 255,
  openat: 257,
  mkdirat: 258,
  mknodat: 259,
  fchownat: 260,
  linkat: 265,
  ppoll: 271,
  unshare: 272,
  utimensat: 280,
  accept4: 288,
  dup3: 292,
  pipe2: 293,
  inotify_init1: 294,
  prlimit64: 302,
  syncfs: 306,
  setns: 308,
  getcpu: 309,
  renameat2: 316,
  seccomp: 317,
  memfd_create: 319,
} as const

export type CallName = keyof typeof X64

const ARM64: Readonly<Record<CallName, number>> = {
  ...ALIKE,
  setxattr: 5,
  getxattr: 8,
  listxattr: 11,
  dup3: 24,
  fcntl: 25,
  inotify_init1: 26,
  inotify_add_watch: 27,
  inotify_rm_watch: 28,
  ioctl: 29,
  mknodat: 33,
  mkdirat: 34,
  linkat: 37,
  mount: 40,
  fchdir: 50,
  chroot: 51,
  fchownat: 54,
  openat: 56,
  close: 57,
  pipe2: 59,
  getdents64: 61,
  lseek: 62,
  read: 63,
  write: 64,
  ppoll: 73,
  utimensat: 88,
  capget: 90,
  capset: 91,
  waitid: 95,
  unshare: 97,
  clock_settime: 112,
  sched_setaffinity: 122,
  sched_getaffinity: 123,
  rt_sigaction: 134,
  rt_sigprocmask: 135,
  setfsuid: 151,
  setfsgid: 152,
  getpgid: 155,
  setgroups: 159,
  prctl: 167,
  getcpu: 168,
  socket: 198,
  socketpair: 199,
  bind: 200,
  listen: 201,
  connect: 203,
  getsockname: 204,
  getpeername: 205,
  sendto: 206,
  recvfrom: 207,
  setsockopt: 208,
  getsockopt: 209,
  sendmsg: 211,
  recvmsg: 212,
  execve: 221,
  accept4: 242,
  wait4: 260,
  prlimit64: 261,
  syncfs: 267,
  setns: 268,
  renameat2: 276,
  seccomp: 277,
  memfd_create: 279,
}

const NUMBER: Readonly<Record<CallName, number>> = process.arch === 'arm64' ? ARM64 : X64

const libc = cLibrary({
  syscall: {
    args: ['i32', 'i64', 'i64', 'i64', 'i64', 'i64', 'i64'],
    returns: 'i64',
  },
  __errno_location: { args: [], returns: 'ptr' },
})

/** A buffer is passed by its address, and lives until the call returns. */
export type Argument = number | bigint | Pointer | ArrayBufferView | null

const word = (argument: Argument): number | bigint =>
  argument === null ? 0 : typeof argument === 'object' ? ptr(argument as Uint8Array) : argument

/** Makes one system call. Returns the result, or minus the errno. */
export function tryCall(
  name: CallName,
  a: Argument = 0,
  b: Argument = 0,
  c: Argument = 0,
  d: Argument = 0,
  e: Argument = 0,
  f: Argument = 0,
): number {
  const { syscall, __errno_location } = libc()
  const answer = syscall(NUMBER[name], word(a), word(b), word(c), word(d), word(e), word(f))
  if (answer >= 0) return Number(answer)
  // errno is read at once: the next call overwrites it.
  const at = __errno_location()
  return at === null ? -1 : -read.i32(at, 0)
}

/** Makes one system call. Returns the result, or throws `CallFailed`. */
export function systemCall(name: CallName, ...args: readonly Argument[]): number {
  return succeeded(name, tryCall(name, ...args))
}

/** The result of `tryCall`, or a `CallFailed` that says what failed. */
export function succeeded(what: string, answer: number): number {
  if (answer >= 0) return answer
  throw new CallFailed(what, -answer)
}

const encoder = new TextEncoder()

/** A string for the kernel: UTF-8 with a closing NUL. */
export const cString = (text: string): Uint8Array => encoder.encode(`${text}\0`)

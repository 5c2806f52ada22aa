/** The system calls of the inner mode. It runs with the sandbox's own rights: nothing here can gain any. */
import { ptr, read } from 'bun:ffi'
import { cLibrary } from '../base/kernel/c-library.ts'

const libc = cLibrary({
  syscall: { args: ['i64', 'u64', 'u64', 'u64', 'u64', 'u64'], returns: 'i64' },
  execve: { args: ['ptr', 'ptr', 'ptr'], returns: 'i32' },
  signal: { args: ['i32', 'u64'], returns: 'u64' },
  __errno_location: { args: [], returns: 'ptr' },
})

const errno = (): number => {
  const at = libc().__errno_location()
  return at === null ? 0 : read.i32(at, 0)
}

/** The answer, or minus the errno. Buffers live until the call returns. */
export function call(number: number, ...args: readonly (number | Uint8Array)[]): number {
  const word = (i: number): number => {
    const argument = args[i] ?? 0
    return argument instanceof Uint8Array ? ptr(argument) : argument
  }
  const result = Number(libc().syscall(number, word(0), word(1), word(2), word(3), word(4)))
  return result >= 0 ? result : -errno()
}

/** A text for the kernel: its bytes and the closing NUL. */
export const cString = (text: string): Uint8Array => new TextEncoder().encode(`${text}\0`)

const FILE =
  process.arch === 'arm64' ? { openat: 56, read: 63, close: 57 } : { openat: 257, read: 0, close: 3 }
const AT_FDCWD = -100
const O_CLOEXEC = 0o2000000

/** The first 16 KiB of a text of the kernel's own. Without node:fs, for which the agent's start does not wait. */
export function readSmallFile(path: string): string {
  const fd = call(FILE.openat, AT_FDCWD, cString(path), O_CLOEXEC)
  const bytes = new Uint8Array(16_384)
  let size = 0
  for (let n = 1; n > 0 && size < bytes.length; size += Math.max(0, n))
    n = call(FILE.read, fd, bytes.subarray(size), bytes.length - size)
  call(FILE.close, fd)
  return new TextDecoder('latin1').decode(bytes.subarray(0, size))
}

const RT_SIGPROCMASK = process.arch === 'arm64' ? 135 : 14
const SIG_SETMASK = 2

/** Whoever started us may have left signals blocked (podman's init: those of job control), and what is blocked stays so across execve. */
export const unblockSignals = (): number => call(RT_SIGPROCMASK, SIG_SETMASK, new Uint8Array(8), 0, 8)

/** The runtime ignores some signals, and what is ignored stays so across execve. */
export function restoreSignals(): void {
  for (let signal = 1; signal <= 64; signal++) libc().signal(signal, 0)
}

/** Becomes another program. Returns only when that failed, with the errno. */
export function become(file: string, argv: readonly string[], env: readonly string[]): number {
  const texts = [file, ...argv, ...env].map(text => Buffer.from(`${text}\0`))
  const list = (from: number, count: number) =>
    new BigUint64Array([...texts.slice(from, from + count).map(text => BigInt(ptr(text))), 0n])
  const args = list(1, argv.length)
  const vars = list(1 + argv.length, env.length)
  libc().execve(ptr(texts[0] ?? Buffer.alloc(1)), ptr(args), ptr(vars))
  return errno()
}

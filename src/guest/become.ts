/** What a guest process does to itself before it starts or becomes another program. */
import { ptr } from 'bun:ffi'
import { PenError } from '../base/error.ts'
import { AT_FDCWD, O_CLOEXEC } from '../base/kernel/descriptor.ts'
import { restoreSignal } from '../base/kernel/process.ts'
import { cString, tryCall } from '../base/kernel/system-call.ts'

const SMALL = 16_384

/** Reads the first 16 KiB of a kernel file. Without node:fs, which would delay the start of the exec daemon. */
export function readSmallFile(path: string): string {
  const fd = tryCall('openat', AT_FDCWD, cString(path), O_CLOEXEC)
  const bytes = new Uint8Array(SMALL)
  let size = 0
  for (let n = 1; n > 0 && size < bytes.length; size += Math.max(0, n))
    n = tryCall('read', fd, bytes.subarray(size), bytes.length - size)
  tryCall('close', fd)
  return new TextDecoder('latin1').decode(bytes.subarray(0, size))
}

const SIG_SETMASK = 2

/** The parent may have blocked signals (podman's init blocks those of job control), and execve keeps them blocked. */
export const unblockSignals = (): number => tryCall('rt_sigprocmask', SIG_SETMASK, new Uint8Array(8), null, 8)

/** The runtime ignores some signals, and execve keeps them ignored. */
export function restoreSignals(): void {
  for (let signal = 1; signal <= 64; signal++) restoreSignal(signal)
}

/** Executes another program. Returns only on failure, with the errno. */
export function become(file: string, argv: readonly string[], env: readonly string[]): number {
  const texts = [file, ...argv, ...env].map(text => Buffer.from(`${text}\0`))
  const list = (from: number, count: number) =>
    new BigUint64Array([...texts.slice(from, from + count).map(text => BigInt(ptr(text))), 0n])
  const args = list(1, argv.length)
  const vars = list(1 + argv.length, env.length)
  return -tryCall('execve', texts[0] ?? Buffer.alloc(1), args, vars)
}

/** The result of a call without which the sandbox must not start. Throws when the call failed. */
export function required(why: string, call: string, result: number, hint?: string): number {
  if (result >= 0) return result
  const what = `${why}: ${call} failed with errno ${-result}`
  throw new PenError('BACKEND', { what, ...(hint !== undefined && { hint }) })
}

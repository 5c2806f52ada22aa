/** Bounds that are set on a process from outside. Loaded only when needed: the first call costs half a millisecond. */
import { ptr } from 'bun:ffi'
import { PenError } from '../base/error.ts'
import { findTool } from '../base/find-tool.ts'
import { cLibrary } from '../base/kernel/c-library.ts'
import { readOfProcess } from '../base/kernel/kernel-file.ts'
import { capture } from '../base/spawn.ts'

const RLIMIT_NPROC = 6

const libc = cLibrary({
  prlimit64: { args: ['i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
  sched_setaffinity: { args: ['i32', 'u64', 'ptr'], returns: 'i32' },
  sched_getaffinity: { args: ['i32', 'u64', 'ptr'], returns: 'i32' },
})

/**
 * For the init of a sandbox before its command starts. In a user namespace of its own only the sandbox's processes
 * count, from Linux 5.14 on. It does not bind when the sandbox's uid is 0 on the host.
 */
export async function setProcessLimit(pid: number, limits: { readonly nproc: number }): Promise<void> {
  const now = new BigUint64Array(2)
  const isKnown = libc().prlimit64(pid, RLIMIT_NPROC, null, ptr(now)) === 0
  // A user whose hard limit (ulimit -Hu) is lower than the policy's keeps that one: it cannot be raised, and is tighter.
  const nproc = Math.min(limits.nproc, isKnown ? Number(now[1]) : Number.POSITIVE_INFINITY)
  const pair = new BigUint64Array([BigInt(nproc), BigInt(nproc)])
  if (libc().prlimit64(pid, RLIMIT_NPROC, ptr(pair), null) === 0) return
  if (await asItsOwner(pid, `--nproc=${nproc}:${nproc}`)) return
  throw new PenError('LIMIT', {
    what: `the number of processes could not be limited to ${nproc}`,
    hint: 'check that prlimit and setpriv (util-linux) are installed',
  })
}

/** Root without CAP_SYS_RESOURCE, as in many containers, may not do what the sandbox's own user may: lower a bound. */
async function asItsOwner(pid: number, bound: string): Promise<boolean> {
  const [setpriv, prlimit] = [findTool('setpriv'), findTool('prlimit')]
  const status = readOfProcess(pid, 'status')
  // One that is gone starts no more.
  if (status === undefined) return true
  const [uid, gid] = ['Uid', 'Gid'].map(key => new RegExp(`^${key}:\\s*(\\d+)`, 'm').exec(status)?.[1])
  if (process.getuid?.() !== 0 || uid === '0' || setpriv === undefined || prlimit === undefined) return false
  const words = [
    setpriv,
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    prlimit,
    `--pid=${pid}`,
    bound,
  ]
  return (await capture(words, { env: {}, timeoutMs: 2000 })).code === 0
}

const MASK_BYTES = 128

/** CPUs that a process may run on. */
export function processorsOf(pid: number): number[] {
  const mask = new Uint8Array(MASK_BYTES)
  if (libc().sched_getaffinity(pid, MASK_BYTES, ptr(mask)) < 0) return []
  return [...mask].flatMap((byte, i) =>
    [0, 1, 2, 3, 4, 5, 6, 7].filter(bit => (byte & (1 << bit)) !== 0).map(bit => i * 8 + bit),
  )
}

/** Inherited by everything started later. False when the process is gone or the kernel refuses. */
export function setProcessors(pid: number, processors: readonly number[]): boolean {
  const mask = new Uint8Array(MASK_BYTES)
  for (const cpu of processors) mask[cpu >> 3] = (mask[cpu >> 3] ?? 0) | (1 << (cpu & 7))
  return libc().sched_setaffinity(pid, MASK_BYTES, ptr(mask)) === 0
}

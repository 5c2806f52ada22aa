/** Bounds that are set on a process from outside. Loaded only when needed: the first call costs half a millisecond. */
import { PenError } from '../base/error.ts'
import { findTool } from '../base/find-tool.ts'
import { readOfProcess } from '../base/kernel/kernel-file.ts'
import { tryCall } from '../base/kernel/system-call.ts'
import { capture } from '../base/spawn.ts'

const RLIMIT_NPROC = 6

/**
 * For the init of a sandbox before its command starts. In a user namespace of its own only the sandbox's processes
 * count, from Linux 5.14 on. It does not bind when the sandbox's uid is 0 on the host.
 */
export async function setProcessLimit(pid: number, limits: { readonly nproc: number }): Promise<void> {
  const now = new BigUint64Array(2)
  const isKnown = tryCall('prlimit64', pid, RLIMIT_NPROC, null, now) === 0
  // A user whose hard limit (ulimit -Hu) is lower than the policy's keeps that one: it cannot be raised, and is tighter.
  const nproc = Math.min(limits.nproc, isKnown ? Number(now[1]) : Number.POSITIVE_INFINITY)
  const pair = new BigUint64Array([BigInt(nproc), BigInt(nproc)])
  if (tryCall('prlimit64', pid, RLIMIT_NPROC, pair, null) === 0) return
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

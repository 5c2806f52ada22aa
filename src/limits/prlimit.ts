/** Limits that are set on another process. Loaded only when needed, because the first call costs 0.5 ms. */
import { PenError } from '../base/error.ts'
import { findTool } from '../base/find-tool.ts'
import { readOfProcess } from '../base/kernel/kernel-file.ts'
import { tryCall } from '../base/kernel/system-call.ts'
import { capture } from '../base/spawn.ts'

const RLIMIT_NPROC = 6

/**
 * Sets RLIMIT_NPROC for the init of a sandbox before its command starts. In its own user namespace only the sandbox's processes
 * count, from Linux 5.14 on. It has no effect if the sandbox's uid is 0 on the host.
 */
export async function setProcessLimit(pid: number, limits: { readonly nproc: number }): Promise<void> {
  const now = new BigUint64Array(2)
  const isKnown = tryCall('prlimit64', pid, RLIMIT_NPROC, null, now) === 0
  // The user's own limit (ulimit -u) counts the sandbox too. Half of it stays free, so that pen can start processes.
  const own = isKnown ? Math.floor(Number(now[0]) / 2) : Number.POSITIVE_INFINITY
  const nproc = Math.min(limits.nproc, own)
  const pair = new BigUint64Array([BigInt(nproc), BigInt(nproc)])
  if (tryCall('prlimit64', pid, RLIMIT_NPROC, pair, null) === 0) return
  if (await asItsOwner(pid, `--nproc=${nproc}:${nproc}`)) return
  throw new PenError('LIMIT', {
    what: `the number of processes could not be limited to ${nproc}`,
    hint: 'check that prlimit and setpriv (util-linux) are installed',
  })
}

/** Root without CAP_SYS_RESOURCE, as in many containers, may not lower this limit. The sandbox's own user may. */
async function asItsOwner(pid: number, bound: string): Promise<boolean> {
  const [setpriv, prlimit] = [findTool('setpriv'), findTool('prlimit')]
  const status = readOfProcess(pid, 'status')
  // A process that is gone starts no others.
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

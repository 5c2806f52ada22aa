/** What a process sets for itself and its children inherit: resource limits, and no_new_privs. */
import { ptr } from 'bun:ffi'
import { readFileSync, statSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { cLibrary } from '../../../base/kernel/c-library.ts'
import { allPids } from '../../../base/kernel/processes.ts'
import { tryCall } from '../../../base/kernel/system-call.ts'
import type { ProcessLimits } from './order.ts'

const onLinux = process.platform === 'linux'
const libc = cLibrary({
  setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  getrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
})

const PR_SET_NO_NEW_PRIVS = 38

/** From here on setuid programs give no privileges. */
export function setNoNewPrivileges(): void {
  if (onLinux && tryCall('prctl', PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    throw new PenError('LIMIT', { what: 'the kernel refuses no_new_privs, so setuid programs would work' })
}

const RLIMIT = onLinux
  ? { cpu: 0, fileSize: 1, core: 4, processes: 6, files: 7 }
  : { cpu: 0, fileSize: 1, core: 4, processes: 7, files: 8 }

/** For this process and its descendants. Never on address space. */
export function setLimits({ files, cpu, fileSize, processes }: ProcessLimits): void {
  const wanted = { core: 0, files, cpu, fileSize, ...(processes !== undefined && { processes }) }
  for (const [name, value] of Object.entries(wanted)) {
    const pair = new BigUint64Array(2)
    libc().getrlimit(RLIMIT[name as keyof typeof RLIMIT], ptr(pair))
    const most = pair[1] ?? 0n
    const bound = BigInt(value) < most ? BigInt(value) : most
    pair.fill(bound)
    if (libc().setrlimit(RLIMIT[name as keyof typeof RLIMIT], ptr(pair)) !== 0)
      throw new PenError('LIMIT', { what: `the limit on ${name} could not be set` })
  }
}

/** How many tasks a user has now. The limit counts threads too. Undefined on a system without /proc. */
export function countProcesses(uid: number): number | undefined {
  if (!onLinux) return undefined
  let sum = 0
  for (const pid of allPids()) {
    try {
      if (statSync(`/proc/${pid}`).uid !== uid) continue
      sum += Number(/^Threads:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 1)
    } catch {
      // The process has ended.
    }
  }
  return sum
}

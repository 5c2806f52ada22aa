/** What a process can do to itself, and its children then have: bounds, no new privileges, and the care for orphans. */
import { ptr } from 'bun:ffi'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { cLibrary } from '../../../base/kernel/c-library.ts'
import { listTree, statFields } from '../../../limits/process-tree.ts'
import type { ProcessLimits } from './order.ts'

const onLinux = process.platform === 'linux'
const libc = cLibrary({
  setrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  getrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  waitpid: { args: ['i32', 'ptr', 'i32'], returns: 'i32' },
  ...(onLinux && { prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' } as const }),
})

const PR_SET_CHILD_SUBREAPER = 36
const PR_SET_NO_NEW_PRIVS = 38

/** Needs neither a namespace nor a privilege. */
export const keepOrphans = (): void => control(PR_SET_CHILD_SUBREAPER)

/** Takes away what setuid programs would give. */
export const gainNothing = (): void => control(PR_SET_NO_NEW_PRIVS)

function control(what: number): void {
  if (!onLinux) return
  const { prctl } = libc() as unknown as { prctl: (...words: number[]) => number }
  if (prctl(what, 1, 0, 0, 0) === 0) return
  throw new PenError('LIMIT', { what: `the kernel refuses what a supervisor needs (prctl ${what})` })
}

const RLIMIT = onLinux
  ? { cpu: 0, fileSize: 1, core: 4, processes: 6, files: 7 }
  : { cpu: 0, fileSize: 1, core: 4, processes: 7, files: 8 }

/** For this process, and for all that it starts. Never on address space. */
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

const WNOHANG = 1

/** The runtime asks for its own child alone; those that were left to us would stay in the table for ever. */
export function reapOrphans(own: number): void {
  if (!onLinux) return
  for (const { pid, depth } of listTree(process.pid))
    if (depth === 1 && pid !== own && statFields(pid)?.[0] === 'Z') libc().waitpid(pid, null, WNOHANG)
}

/** How many a user has now, threads and all; the bound counts those too. Undefined where there is nothing to count by. */
export function countProcesses(uid: number): number | undefined {
  if (!onLinux) return undefined
  let sum = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      if (statSync(`/proc/${name}`).uid !== uid) continue
      sum += Number(/^Threads:\s*(\d+)/m.exec(readFileSync(`/proc/${name}/status`, 'latin1'))?.[1] ?? 1)
    } catch {
      // Gone meanwhile.
    }
  }
  return sum
}

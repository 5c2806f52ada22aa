/** Cgroups that a container engine makes: pen reads what the kernel counts there, and sets the one bound that no engine can know. */
import { readFileSync, writeFileSync } from 'node:fs'
import { readKernelFile } from '../base/kernel/kernel-file.ts'
import type { Cgroup, CgroupLimit } from './cgroup.ts'
import { readV1 } from './cgroup-v1.ts'
import { readV2 } from './cgroup-v2.ts'
import { findOwnCgroups } from './own-cgroup.ts'
import type { LimitSupport } from './probe.ts'

/** What the engine holds on this machine; all else is watched. */
export const engineSupport = (held: ReadonlySet<CgroupLimit>): LimitSupport => ({
  means: { how: 'engine' },
  own: { v1: new Map(), v2: undefined },
  held,
})

/**
 * So many processes besides those that are there by now: how many threads the exec daemon has is not known before it runs. Where this user may
 * not write, what the engine was told still holds, which is more than that and never less.
 */
export function boundProcesses(pid: number, pids: number): void {
  try {
    const { v1, v2 } = cgroupsOf(pid)
    const dir = v1.get('pids') ?? v2?.dir
    if (dir === undefined) return
    const own = Number.parseInt(readFileSync(`${dir}/pids.current`, 'latin1'), 10)
    writeFileSync(`${dir}/pids.max`, String(own + pids), { flag: 'r+' })
  } catch {
    // Not ours to write, or gone.
  }
}

const cgroupsOf = (pid: number) =>
  findOwnCgroups({
    own: readKernelFile(`/proc/${pid}/cgroup`, 'utf8'),
    mounts: readKernelFile('/proc/self/mountinfo', 'utf8'),
  })

/** Those that a process stands in; undefined when it is gone, or when this machine does not show them. */
export function cgroupOf(pid: number, holds: ReadonlySet<CgroupLimit>): Cgroup | undefined {
  try {
    const { v1, v2 } = cgroupsOf(pid)
    const [memory, pids, cpus] = [v1.get('memory'), v1.get('pids'), v1.get('cpu')]
    if (memory !== undefined || pids !== undefined) return readV1({ memory, pids, cpus }, holds)
    return v2 === undefined ? undefined : readV2(v2.dir, holds)
  } catch {
    return undefined
  }
}

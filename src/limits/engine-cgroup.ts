/** Cgroups that a container engine makes: pen does not write there, it reads what the kernel counts. */
import { readKernelFile } from '../base/kernel-file.ts'
import type { Cgroup, CgroupLimit } from './cgroup.ts'
import { readV1 } from './cgroup-v1.ts'
import { readV2 } from './cgroup-v2.ts'
import { findOwnCgroups } from './own-cgroup.ts'
import type { Found } from './probe.ts'

/** What the engine holds on this machine; all else is watched. */
export const engineMeans = (held: ReadonlySet<CgroupLimit>): Found => ({
  means: { how: 'engine' },
  own: { v1: new Map(), v2: undefined },
  held,
})

/** Those that a process stands in; undefined when it is gone, or when this machine does not show them. */
export function cgroupOf(pid: number, holds: ReadonlySet<CgroupLimit>): Cgroup | undefined {
  try {
    const { v1, v2 } = findOwnCgroups({
      own: readKernelFile(`/proc/${pid}/cgroup`, 'utf8'),
      mounts: readKernelFile('/proc/self/mountinfo', 'utf8'),
    })
    const [memory, pids, cpus] = [v1.get('memory'), v1.get('pids'), v1.get('cpu')]
    if (memory !== undefined || pids !== undefined) return readV1({ memory, pids, cpus }, holds)
    return v2 === undefined ? undefined : readV2(v2.dir, holds)
  } catch {
    return undefined
  }
}

/** Cgroups that a container engine or systemd makes. pen reads their counters, and sets the one limit that an engine cannot know. */
import { readFileSync, writeFileSync } from 'node:fs'
import { readKernelFile } from '../base/kernel/kernel-file.ts'
import type { Bounds } from './bounds.ts'
import type { Cgroup, CgroupLimit } from './cgroup.ts'
import { readV1 } from './cgroup-v1.ts'
import { readV2 } from './cgroup-v2.ts'
import { findOwnCgroups } from './own-cgroup.ts'
import type { LimitSupport } from './probe.ts'

/** The limits that the engine enforces on this machine. All others are watched. */
export const engineSupport = (held: ReadonlySet<CgroupLimit>): LimitSupport => ({
  mechanism: { how: 'engine' },
  held,
})

/**
 * Sets the process limit above the processes that already run: the number of exec daemon threads is unknown before it
 * runs. If this user may not write the limit, the engine's limit applies, which is higher.
 */
export function boundProcesses(pid: number, pids: number): void {
  try {
    const { v1, v2 } = cgroupsOf(pid)
    const dir = v1.get('pids') ?? v2?.dir
    if (dir === undefined) return
    const own = Number.parseInt(readFileSync(`${dir}/pids.current`, 'latin1'), 10)
    writeFileSync(`${dir}/pids.max`, String(own + pids), { flag: 'r+' })
  } catch {
    // Not writable, or gone.
  }
}

const cgroupsOf = (pid: number) =>
  findOwnCgroups({
    own: readKernelFile(`/proc/${pid}/cgroup`, 'utf8'),
    mounts: readKernelFile('/proc/self/mountinfo', 'utf8'),
  })

/** The cgroups of a process; undefined when it is gone, or when this machine does not show them. */
export function cgroupOf(pid: number): Cgroup | undefined {
  try {
    const { v1, v2 } = cgroupsOf(pid)
    if (v1.has('memory') || v1.has('pids')) return readV1(v1)
    return v2 === undefined ? undefined : readV2(v2.dir)
  } catch {
    return undefined
  }
}

/**
 * The version 2 cgroup that holds this sandbox alone. An engine's cgroup is left out: its first process is pen's exec daemon, which
 * ends the container when pen is killed.
 */
export function sandboxCgroup({ support, cgroup, name }: Bounds, init: number): string | undefined {
  if (support.mechanism.how === 'cgroup-v2') return cgroup?.dirs[0]
  if (support.mechanism.how !== 'systemd-scope') return undefined
  const dir = cgroupsOf(init).v2?.dir
  return dir?.endsWith(`/${name}.scope`) ? dir : undefined
}

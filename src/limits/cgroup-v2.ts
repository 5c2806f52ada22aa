/**
 * Cgroup version 2: one hierarchy, with processes only in leaves. A sandbox goes below the nearest ancestor of pen's cgroup that
 * delegates its controllers and is writable. That is `app.slice` in a desktop session, and any slice for root.
 */
import { mkdirSync, openSync, readFileSync } from 'node:fs'
import { dirname } from '../base/posix-path.ts'
import type { Limits } from '../policy/policy.ts'
import {
  CGROUP_LIMITS,
  Cgroup,
  type CgroupLimit,
  CONTROLLER,
  CounterFile,
  CPU_PERIOD_US,
  cpuQuota,
  isWritable,
  type OpenCgroup,
  OWN_PROCESSES,
  removeCgroup,
  setLimit,
  tryToSet,
} from './cgroup.ts'
import type { OwnCgroups } from './own-cgroup.ts'

export interface V2Parent {
  readonly dir: string
  readonly holds: ReadonlySet<CgroupLimit>
  /** Controllers to enable first. Only root can, and only at the top, where processes may be beside children. */
  readonly enable: readonly string[]
}

/** Moving a process between cgroups needs write access to `cgroup.procs` of the common ancestor, which is this parent. */
export function findV2(own: OwnCgroups): V2Parent | undefined {
  if (own.v2 === undefined) return undefined
  for (let dir = own.v2.dir; dir.length >= own.v2.top.length; dir = dirname(dir)) {
    const held = words(`${dir}/cgroup.subtree_control`)
    const top = dir === own.v2.top
    const given =
      top && isWritable(`${dir}/cgroup.subtree_control`) ? words(`${dir}/cgroup.controllers`) : held
    if (given.has('memory') && given.has('pids') && isWritable(dir) && isWritable(`${dir}/cgroup.procs`)) {
      const holds = CGROUP_LIMITS.filter(limit => given.has(CONTROLLER[limit]))
      const enable = holds.map(limit => CONTROLLER[limit]).filter(controller => !held.has(controller))
      return { dir, holds: new Set(holds), enable }
    }
  }
  return undefined
}

const words = (file: string): Set<string> => {
  try {
    return new Set(readFileSync(file, 'utf8').trim().split(/\s+/))
  } catch {
    return new Set()
  }
}

export function openV2(limits: Limits, name: string, parent: V2Parent): Cgroup {
  for (const controller of parent.enable) setLimit(`${parent.dir}/cgroup.subtree_control`, `+${controller}`)
  const dir = `${parent.dir}/${name}`
  mkdirSync(dir)
  try {
    if (parent.holds.has('memory')) {
      setLimit(`${dir}/memory.max`, limits.memory)
      tryToSet(`${dir}/memory.swap.max`, 0)
      // Kill all or nothing: half of a build is useless after the other half was killed.
      tryToSet(`${dir}/memory.oom.group`, 1)
    }
    if (parent.holds.has('pids')) setLimit(`${dir}/pids.max`, limits.pids + OWN_PROCESSES)
    if (parent.holds.has('cpus')) setLimit(`${dir}/cpu.max`, `${cpuQuota(limits)} ${CPU_PERIOD_US}`)
    return readV2(dir, { joinFds: [openSync(`${dir}/cgroup.procs`, 'w')], dirs: [dir] })
  } catch (error) {
    removeCgroup(dir)
    throw error
  }
}

/** Counters of a cgroup that exists: pen's own, or one that systemd or an engine made. */
export function readV2(dir: string, own?: OpenCgroup): Cgroup {
  return new Cgroup(
    {
      oomKills: new CounterFile(`${dir}/memory.events`, { key: 'oom_kill' }),
      refusedForks: new CounterFile(`${dir}/pids.events`, { key: 'max' }),
      throttledMs: new CounterFile(`${dir}/cpu.stat`, { key: 'throttled_usec', unit: 1000 }),
      cpuMs: new CounterFile(`${dir}/cpu.stat`, { key: 'usage_usec', unit: 1000 }),
      memoryBytes: new CounterFile(`${dir}/memory.current`),
      pids: new CounterFile(`${dir}/pids.current`),
    },
    own,
  )
}

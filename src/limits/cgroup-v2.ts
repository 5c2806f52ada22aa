/**
 * Cgroup version 2: one hierarchy, with processes only in leaves. A sandbox goes below the nearest ancestor of pen's cgroup that
 * delegates its controllers and is writable. That is `app.slice` in a desktop session, and any slice for root.
 */
import { accessSync, closeSync, constants, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from '../base/posix-path.ts'
import type { Limits } from '../policy/policy.ts'
import {
  CGROUP_LIMITS,
  type Cgroup,
  type CgroupLimit,
  CONTROLLER,
  CounterFile,
  CPU_PERIOD_US,
  cpuQuota,
  OWN_PROCESSES,
  removeCgroup,
  setLimit,
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
    const given = top && writable(`${dir}/cgroup.subtree_control`) ? words(`${dir}/cgroup.controllers`) : held
    if (given.has('memory') && given.has('pids') && writable(dir) && writable(`${dir}/cgroup.procs`)) {
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

const writable = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

export function openV2(limits: Limits, name: string, parent: V2Parent): Cgroup {
  for (const controller of parent.enable) setLimit(`${parent.dir}/cgroup.subtree_control`, `+${controller}`)
  const dir = `${parent.dir}/${name}`
  mkdirSync(dir)
  try {
    if (parent.holds.has('memory')) {
      setLimit(`${dir}/memory.max`, limits.memory)
      optional(`${dir}/memory.swap.max`, '0')
      // Kill all or nothing: half of a build is useless after the other half was killed.
      optional(`${dir}/memory.oom.group`, '1')
    }
    if (parent.holds.has('pids')) setLimit(`${dir}/pids.max`, limits.pids + OWN_PROCESSES)
    if (parent.holds.has('cpus')) setLimit(`${dir}/cpu.max`, `${cpuQuota(limits)} ${CPU_PERIOD_US}`)
    return { ...readV2(dir, parent.holds), joinFds: [openSync(`${dir}/cgroup.procs`, 'w')], dirs: [dir] }
  } catch (error) {
    removeCgroup(dir)
    throw error
  }
}

/** Counters of an existing cgroup: pen's own, or one that systemd made. */
export function readV2(dir: string, holds: ReadonlySet<CgroupLimit>): Cgroup {
  const file = (name: string): CounterFile => new CounterFile(`${dir}/${name}`)
  const oom = file('memory.events')
  const forks = file('pids.events')
  const cpu = file('cpu.stat')
  const memory = file('memory.current')
  const tasks = file('pids.current')
  const us = (key: string): number | undefined => {
    const value = cpu.read(key)
    return value === undefined ? undefined : value / 1000
  }
  return {
    holds,
    joinFds: [],
    dirs: [],
    counters: () => ({
      oomKills: oom.read('oom_kill') ?? 0,
      refusedForks: forks.read('max') ?? 0,
      throttledMs: us('throttled_usec') ?? 0,
    }),
    usage: () => ({ cpuMs: us('usage_usec'), memoryBytes: memory.read(), pids: tasks.read() }),
    close(): void {
      for (const f of [oom, forks, cpu, memory, tasks]) f.close()
      for (const fd of this.joinFds) closeSync(fd)
    },
  }
}

function optional(path: string, value: string): void {
  try {
    writeFileSync(path, value, { flag: 'r+' })
  } catch {
    // Not supported by this kernel, or no swap. The limit itself works without it.
  }
}

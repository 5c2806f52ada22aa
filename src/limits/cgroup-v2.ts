/**
 * Version 2: one hierarchy. Processes live in leaves only, so a sandbox goes below the nearest ancestor of pen's cgroup
 * that hands its controllers down and that this user may write to: `app.slice` of a desktop session, any slice for root.
 */
import { accessSync, closeSync, constants, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from '../base/posix-path.ts'
import type { Limits } from '../policy/policy.ts'
import {
  type Cgroup,
  type CgroupLimit,
  CounterFile,
  CPU_PERIOD_US,
  cpuQuota,
  OWN_PROCESSES,
  removeCgroup,
  setLimit,
} from './cgroup.ts'
import type { OwnCgroups } from './own-cgroup.ts'

const CONTROLLER = { memory: 'memory', pids: 'pids', cpus: 'cpu' } as const satisfies Record<
  CgroupLimit,
  string
>

export interface V2Parent {
  readonly dir: string
  readonly holds: ReadonlySet<CgroupLimit>
  /** Controllers to switch on first: at the top, which alone may have processes beside children, and by root. */
  readonly enable: readonly string[]
}

/** Moving between cgroups needs the right to write `cgroup.procs` of the common ancestor: the parent found here. */
export function findV2(own: OwnCgroups): V2Parent | undefined {
  if (own.v2 === undefined) return undefined
  for (let dir = own.v2.dir; dir.length >= own.v2.top.length; dir = dirname(dir)) {
    const held = words(`${dir}/cgroup.subtree_control`)
    const top = dir === own.v2.top
    const given = top && writable(`${dir}/cgroup.subtree_control`) ? words(`${dir}/cgroup.controllers`) : held
    if (given.has('memory') && given.has('pids') && writable(dir) && writable(`${dir}/cgroup.procs`)) {
      const holds = LIMITS.filter(limit => given.has(CONTROLLER[limit]))
      const enable = holds.map(limit => CONTROLLER[limit]).filter(controller => !held.has(controller))
      return { dir, holds: new Set(holds), enable }
    }
  }
  return undefined
}

const LIMITS: readonly CgroupLimit[] = ['memory', 'pids', 'cpus']

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
      // All or nothing: half of a build that goes on after the other half was killed helps nobody.
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

/** Counters of a cgroup that exists, ours or one that systemd made for us. */
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
    // Not on this kernel, or no swap: the bound itself holds without it.
  }
}

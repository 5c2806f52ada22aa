/** Cgroup version 1: one hierarchy per controller, with a directory in each. Usually only root may write there. */
import { accessSync, closeSync, constants, mkdirSync, openSync, writeFileSync } from 'node:fs'
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

const writable = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The controllers in which this user may make a cgroup below pen's own. */
export function findV1(own: OwnCgroups): ReadonlyMap<CgroupLimit, string> {
  const found = new Map<CgroupLimit, string>()
  for (const limit of CGROUP_LIMITS) {
    const dir = own.v1.get(CONTROLLER[limit])
    if (dir !== undefined && writable(dir)) found.set(limit, dir)
  }
  return found
}

export function openV1(
  limits: Limits,
  name: string,
  parents: ReadonlyMap<CgroupLimit, string>,
  cores: number,
): Cgroup {
  const dirs = new Map<CgroupLimit, string>()
  const joinFds: number[] = []
  try {
    for (const [limit, parent] of parents) {
      // A limit of at least all cores needs no cgroup.
      if (limit === 'cpus' && limits.cpus >= cores) continue
      const dir = `${parent}/${name}`
      mkdirSync(dir)
      dirs.set(limit, dir)
      SET[limit](dir, limits)
      // `tasks` and not `cgroup.procs`: a single-threaded process joins without a lock that blocks other processes.
      joinFds.push(openSync(`${dir}/tasks`, 'w'))
    }
  } catch (error) {
    for (const fd of joinFds) closeSync(fd)
    for (const dir of dirs.values()) removeCgroup(dir)
    throw error
  }
  return opened(dirs, joinFds, new Set(parents.keys()))
}

const SET: Readonly<Record<CgroupLimit, (dir: string, limits: Limits) => void>> = {
  memory: (dir, { memory }) => {
    setLimit(`${dir}/memory.limit_in_bytes`, memory)
    // Absent if the kernel does not count swap. Then disable swapping for the sandbox.
    if (!tryToSet(`${dir}/memory.memsw.limit_in_bytes`, memory)) tryToSet(`${dir}/memory.swappiness`, 0)
  },
  pids: (dir, { pids }) => setLimit(`${dir}/pids.max`, pids + OWN_PROCESSES),
  cpus: (dir, limits) => {
    setLimit(`${dir}/cpu.cfs_period_us`, CPU_PERIOD_US)
    setLimit(`${dir}/cpu.cfs_quota_us`, cpuQuota(limits))
  },
}

function tryToSet(file: string, value: number): boolean {
  try {
    writeFileSync(file, String(value), { flag: 'r+' })
    return true
  } catch {
    return false
  }
}

/** Counters of existing cgroups, such as an engine's. */
export function readV1(
  { memory, pids, cpus }: Readonly<Record<CgroupLimit, string | undefined>>,
  holds: ReadonlySet<CgroupLimit>,
): Cgroup {
  const dirs = Object.entries({ memory, pids, cpus }).flatMap(([limit, dir]) =>
    dir === undefined ? [] : [[limit as CgroupLimit, dir] as const],
  )
  return { ...opened(new Map(dirs), [], holds), dirs: [] }
}

function opened(
  dirs: ReadonlyMap<CgroupLimit, string>,
  joinFds: readonly number[],
  holds: ReadonlySet<CgroupLimit>,
): Cgroup {
  const counter = (limit: CgroupLimit, file: string): CounterFile =>
    new CounterFile(dirs.has(limit) ? `${dirs.get(limit)}/${file}` : undefined)
  const oom = counter('memory', 'memory.oom_control')
  const forks = counter('pids', 'pids.events')
  const cpu = counter('cpus', 'cpu.stat')
  const memory = counter('memory', 'memory.usage_in_bytes')
  const tasks = counter('pids', 'pids.current')
  // Exists when cpu and cpuacct share a hierarchy, as on most systems.
  const time = counter('cpus', 'cpuacct.usage')
  return {
    holds,
    joinFds,
    dirs: [...dirs.values()],
    counters: () => ({
      oomKills: oom.read('oom_kill') ?? 0,
      refusedForks: forks.read('max') ?? 0,
      throttledMs: (cpu.read('throttled_time') ?? 0) / 1e6,
    }),
    usage: () => {
      const ns = time.read()
      return {
        cpuMs: ns === undefined ? undefined : ns / 1e6,
        memoryBytes: memory.read(),
        pids: tasks.read(),
      }
    },
    close: () => {
      for (const file of [oom, forks, cpu, memory, tasks, time]) file.close()
      for (const fd of joinFds) closeSync(fd)
    },
  }
}

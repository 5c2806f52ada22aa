/** Cgroup version 1: one hierarchy per controller, with a directory in each. Usually only root may write there. */
import { closeSync, mkdirSync, openSync } from 'node:fs'
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

/** The controllers in which this user may make a cgroup below pen's own. */
export function findV1(own: OwnCgroups): ReadonlyMap<CgroupLimit, string> {
  const found = new Map<CgroupLimit, string>()
  for (const limit of CGROUP_LIMITS) {
    const dir = own.v1.get(CONTROLLER[limit])
    if (dir !== undefined && isWritable(dir)) found.set(limit, dir)
  }
  return found
}

export function openV1(
  limits: Limits,
  name: string,
  parents: ReadonlyMap<CgroupLimit, string>,
  cores: number,
): Cgroup {
  const dirs = new Map<string, string>()
  const joinFds: number[] = []
  try {
    for (const [limit, parent] of parents) {
      // A limit of at least all cores needs no cgroup.
      if (limit === 'cpus' && limits.cpus >= cores) continue
      const dir = `${parent}/${name}`
      mkdirSync(dir)
      dirs.set(CONTROLLER[limit], dir)
      SET[limit](dir, limits)
      // `tasks` and not `cgroup.procs`: a single-threaded process joins without a lock that blocks other processes.
      joinFds.push(openSync(`${dir}/tasks`, 'w'))
    }
  } catch (error) {
    for (const fd of joinFds) closeSync(fd)
    for (const dir of dirs.values()) removeCgroup(dir)
    throw error
  }
  return readV1(dirs, { joinFds, dirs: [...dirs.values()] })
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

/** Counters of cgroups that exist, such as an engine's. */
export function readV1(dirs: ReadonlyMap<string, string>, own?: OpenCgroup): Cgroup {
  const counter = (limit: CgroupLimit, file: string, options?: { key?: string; unit?: number }) => {
    const dir = dirs.get(CONTROLLER[limit])
    return new CounterFile(dir === undefined ? undefined : `${dir}/${file}`, options)
  }
  return new Cgroup(
    {
      oomKills: counter('memory', 'memory.oom_control', { key: 'oom_kill' }),
      refusedForks: counter('pids', 'pids.events', { key: 'max' }),
      throttledMs: counter('cpus', 'cpu.stat', { key: 'throttled_time', unit: 1e6 }),
      // Exists when cpu and cpuacct share a hierarchy, as on most systems.
      cpuMs: counter('cpus', 'cpuacct.usage', { unit: 1e6 }),
      memoryBytes: counter('memory', 'memory.usage_in_bytes'),
      pids: counter('pids', 'pids.current'),
    },
    own,
  )
}

/**
 * Asks the user's service manager for a scope, for a login that is not below it (a text console, ssh). It needs a D-Bus call, so
 * it is used only if pen cannot make a cgroup directly.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import type { Limits } from '../policy/policy.ts'
import { type Cgroup, type CgroupLimit, CPU_PERIOD_US, cpuQuota, OWN_PROCESSES } from './cgroup.ts'
import { readV2 } from './cgroup-v2.ts'
import type { OwnCgroups } from './own-cgroup.ts'

export interface ScopeTool {
  readonly systemdRun: string
  readonly runtimeDir: string
}

export function findScopeTool(uid: number, runtimeDir = `/run/user/${uid}`): ScopeTool | undefined {
  try {
    if (statSync(runtimeDir).uid !== uid || !existsSync(`${runtimeDir}/systemd/private`)) return undefined
  } catch {
    return undefined
  }
  const systemdRun = findTool('systemd-run')
  return systemdRun === undefined ? undefined : { systemdRun, runtimeDir }
}

/** With --scope, systemd-run executes the program itself, so descriptors and the pid stay. */
export const scopeArguments = (tool: ScopeTool, limits: Limits, name: string): string[] => [
  tool.systemdRun,
  '--user',
  '--scope',
  '--quiet',
  '--collect',
  `--unit=${name}.scope`,
  ...[
    `MemoryMax=${limits.memory}`,
    'MemorySwapMax=0',
    `TasksMax=${limits.pids + OWN_PROCESSES}`,
    `CPUQuota=${Math.max(1, Math.round((cpuQuota(limits) / CPU_PERIOD_US) * 100))}%`,
  ].map(property => `--property=${property}`),
  '--',
]

/** The scope of a running process, for its counters; undefined if it has none. */
export function scopeOf(pid: number, name: string, own: OwnCgroups): Cgroup | undefined {
  if (own.v2 === undefined) return undefined
  try {
    const path = /^0::(\/.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1] ?? ''
    if (!path.endsWith(`/${name}.scope`)) return undefined
    const holds = new Set<CgroupLimit>(['memory', 'pids', 'cpus'])
    return readV2(`${own.v2.top}${path}`, holds)
  } catch {
    return undefined
  }
}

/**
 * Asks the user's service manager for a scope, for a login that is not below it (a text console, ssh). It needs a D-Bus call, so
 * it is used only if pen cannot make a cgroup directly.
 */
import { existsSync, statSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import type { Limits } from '../policy/policy.ts'
import { CPU_PERIOD_US, cpuQuota, OWN_PROCESSES } from './cgroup.ts'

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

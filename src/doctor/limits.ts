/** Checks limits: creates the cgroup that a sandbox would get, and removes it. */
import { existsSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { parseMillis } from '../base/quantity.ts'
import { Bounds } from '../limits/bounds.ts'
import { cgroupParents, findLimitSupport, type LimitMechanism, probeLimits } from '../limits/probe.ts'
import { sweepRemembered } from '../limits/stale.ts'
import type { Capabilities } from '../plan/gaps.ts'
import type { Limits } from '../policy/policy.ts'
import { fails, failureOf, type Machine, messageOf, ok, type Result, weak } from './finding.ts'

const SOME: Limits = {
  cpus: 0.5,
  memory: (256 * 2 ** 20) as Limits['memory'],
  pids: 64,
  wall: parseMillis('60s'),
  disk: (2 ** 20) as Limits['disk'],
  output: (2 ** 20) as Limits['output'],
  files: 64,
}

const NAMES: Readonly<Record<LimitMechanism['how'], string>> = {
  'cgroup-v1': 'a cgroup (version 1)',
  'cgroup-v2': 'a cgroup (version 2)',
  'systemd-scope': 'a systemd user scope',
  engine: 'cgroups of a container engine',
  watchdog: 'no cgroup',
}

export async function checkLimits(): Promise<Result> {
  const support = findLimitSupport()
  const { how } = support.mechanism
  const notMade = `${NAMES[how]} could not be made`
  let bounds: Bounds
  try {
    bounds = new Bounds({ limits: SOME, runId: 'doctor', support })
  } catch (error) {
    return fails(notMade, messageOf(error), 'check the limits of the session that runs pen')
  }
  const dirs = bounds.cgroup?.dirs ?? []
  const problem =
    how === 'systemd-scope'
      ? await failureOf([...bounds.wrap, findTool('true') ?? '/bin/true'], bounds.wrapEnv)
      : undefined
  bounds.cgroup?.close()
  // A cgroup that could not be removed is reported below.
  await bounds.remove().catch(() => undefined)
  if (problem !== undefined) return fails(notMade, problem, 'systemctl --user status')
  const left = dirs.filter(dir => existsSync(dir))
  if (left.length === 0) return describe(how, probeLimits(support))
  return weak(`a cgroup could not be removed: ${left.join(', ')}`, undefined, `rmdir ${left.join(' ')}`)
}

export function describe(how: LimitMechanism['how'], holds: Capabilities['limits']): Result {
  const limitsBy = (by: string): string =>
    Object.entries(holds)
      .filter(([, hold]) => hold === by)
      .map(([limit]) => limit)
      .join(', ')
  const made = how === 'watchdog' ? NAMES[how] : `${NAMES[how]} works`
  const what = `${made}: the kernel enforces ${limitsBy('kernel')}; pen checks ${limitsBy('watchdog')}`
  if (holds.memory === 'kernel' && holds.cpus === 'kernel' && holds.pids === 'kernel') return ok(what)
  return weak(
    what,
    'limits that pen checks can be exceeded for a moment',
    how === 'watchdog'
      ? 'run pen in a systemd session (log in again, or loginctl enable-linger), or with a writable cgroup'
      : 'delegate the missing cgroup controllers to your session',
  )
}

/** Cgroups that a killed pen left. The next `pen run` removes them. */
export function checkLeftovers({ state }: Machine): Result {
  const recorded = `${state}/cache/cgroup-places`
  const left = sweepRemembered(recorded, { remove: false }, cgroupParents(findLimitSupport()))
  if (left.length === 0) return ok('no leftovers of earlier runs')
  return weak(
    `${left.length} empty ${left.length === 1 ? 'cgroup' : 'cgroups'} of killed runs: ${left.slice(0, 3).join(', ')}`,
    'they contain no process',
    'the next pen run removes them',
  )
}

/** Cgroups that a killed pen left. The next `pen run` removes them. */
import { cgroupParents, findLimitSupport } from '../limits/probe.ts'
import { sweepRemembered } from '../limits/stale.ts'
import { type Finding, ok, weak } from './finding.ts'
import type { Machine } from './machine.ts'

export async function checkLeftovers({ state }: Machine): Promise<readonly Finding[]> {
  const recorded = `${state}/cache/cgroup-places`
  const left = sweepRemembered(recorded, { remove: false }, cgroupParents(findLimitSupport()))
  if (left.length === 0) return [ok('leftovers', 'no leftovers of earlier runs')]
  return [
    weak(
      'leftovers',
      `${left.length} empty ${left.length === 1 ? 'cgroup' : 'cgroups'} of killed runs: ${left.slice(0, 3).join(', ')}`,
      'they contain no process',
      'the next pen run removes them',
    ),
  ]
}

/** What a pen that was killed has left, as far as it can be seen. The next `pen run` takes cgroups away by itself. */

import { readdirSync, readFileSync } from 'node:fs'
import { isAlive } from '../base/kernel/processes.ts'
import { ownerOf } from '../limits/cgroup-name.ts'
import { findLimitSupport } from '../limits/probe.ts'
import { type Finding, ok, weak } from './finding.ts'
import type { Machine } from './machine.ts'

export async function checkLeftovers({ state }: Machine): Promise<readonly Finding[]> {
  const left = [...placesOf(state)].flatMap(staleIn)
  if (left.length === 0) return [ok('leftovers', 'nothing of earlier runs is left')]
  return [
    weak(
      'leftovers',
      `${left.length} empty ${left.length === 1 ? 'cgroup' : 'cgroups'} of runs that were killed: ${left.slice(0, 3).join(', ')}`,
      'they hold no process',
      'the next pen run removes them',
    ),
  ]
}

/** Where pen makes cgroups now, and where it ever made one. */
function placesOf(state: string): Set<string> {
  const { means } = findLimitSupport()
  const now =
    means.how === 'cgroup-v1'
      ? [...means.parents.values()]
      : means.how === 'cgroup-v2'
        ? [means.parent.dir]
        : []
  let remembered: string[] = []
  try {
    remembered = readFileSync(`${state}/cache/cgroup-places`, 'utf8')
      .split('\n')
      .filter(line => line.startsWith('/'))
  } catch {
    // No run yet.
  }
  return new Set([...now, ...remembered])
}

/** Names with the mark of a pen that is not there any more. */
export function staleIn(place: string): string[] {
  try {
    return readdirSync(place)
      .filter(name => {
        const owner = ownerOf(name)
        return owner !== undefined && !isAlive(owner)
      })
      .map(name => `${place}/${name}`)
  } catch {
    return []
  }
}

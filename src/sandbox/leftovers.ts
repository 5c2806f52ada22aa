/** What keepers that were killed left behind, wherever it is. Each kind is known by its owner, which is dead. */
import { leftContainers } from '../backend/container/left-containers.ts'
import { sweepRemembered } from '../limits/stale.ts'
import { listSandboxes, stateOfUser } from './list-sandboxes.ts'

export interface Leftover {
  readonly kind: 'record' | 'cgroup' | 'container'
  readonly name: string
}

export async function collectLeftovers(options: { readonly remove: boolean }): Promise<Leftover[]> {
  const sandboxes = await listSandboxes({ repair: options.remove })
  const records = sandboxes.filter(({ repaired }) => repaired)
  const cacheDir = `${stateOfUser()}/cache`
  const cgroups = sweepRemembered(`${cacheDir}/cgroup-places`, options)
  const containers = await leftContainers(cacheDir, options)
  return [
    ...records.map(({ id }): Leftover => ({ kind: 'record', name: id })),
    ...cgroups.map((name): Leftover => ({ kind: 'cgroup', name })),
    ...containers.map((name): Leftover => ({ kind: 'container', name })),
  ]
}

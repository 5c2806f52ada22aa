/** The sandbox's own git directories of a project, for `pen git`. */
import { ownDirectories } from '../repository/pending.ts'
import type { SyncAllOptions } from '../repository/sync-all.ts'
import { prepare } from './prepare.ts'
import { repositoryOptions } from './repository-options.ts'

/** Of sandboxes that run, and of those that left something. */
export async function ownRepositories(
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly SyncAllOptions[]> {
  const prepared = await prepare({
    command: [],
    env,
    allowUserExpansion: false,
    offline: true,
    flags: () => ({}),
  })
  const options = repositoryOptions(prepared)
  if (options === undefined) return []
  return ownDirectories(options.world.sandbox.stateDir).map(place => ({ ...options, ...place }))
}

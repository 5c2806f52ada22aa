/** What pen watches in the project while a sandbox runs. Each can end the sandbox. */
import { canBePaused } from '../../backend/backend.ts'
import { PlaceWatch } from '../../protect/watch-places.ts'
import { GitlinkWatch } from '../../repository/submodules/watch-gitlinks.ts'
import { MountedPlaces } from '../../survey/mounted-places.ts'
import { heldPointers } from '../repository-options.ts'
import type { Supervised } from './supervisor.ts'

export interface WatchOptions {
  readonly sandbox: Supervised
  /** Ends the sandbox, and says why. */
  readonly end: (why: string) => void
  readonly tell: (line: string) => void
}

/** Undefined where the sandbox cannot change a repository of the host. */
export function watchGitlinks({ sandbox, end, tell }: WatchOptions): GitlinkWatch | undefined {
  const { prepared, repository } = sandbox
  const { git, records, enclosing } = prepared.facts.repository
  const { workspace, soft, layer } = prepared.plan
  const own = git !== undefined && repository !== undefined ? { git, records, workspace } : undefined
  if (soft || layer !== undefined || (own === undefined && enclosing.length === 0)) return undefined
  return new GitlinkWatch({
    workspace,
    own,
    enclosing,
    stateDir: prepared.loaded.project.shared.stateDir,
    mounted: repository?.mounted ?? new MountedPlaces(workspace, heldPointers(prepared)),
    onEnd: line => {
      tell(line)
      end(line)
    },
  })
}

/** `failed`: the audit cannot be written. */
export function watchPlaces(options: WatchOptions, failed: (error: unknown) => void): PlaceWatch {
  const { sandbox, end, tell } = options
  const { prepared, running, limits, audit, watchRecord } = sandbox
  return new PlaceWatch({
    loaded: prepared.loaded,
    facts: prepared.facts,
    running,
    watchRecord,
    whilePaused: canBePaused(running) ? act => limits.whilePaused(act) : act => act(),
    onEnd: end,
    tell,
    record: event => {
      try {
        audit.record(event)
      } catch (error) {
        failed(error)
      }
    },
  })
}

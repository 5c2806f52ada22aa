/**
 * Files that the user deleted while the sandbox edited them: in the layer they look like new ones. overlayfs marks what it
 * copied up from the project, under whichever name it is now. So such a file was deleted on the host, or moved in the sandbox.
 */

import { errnoOf } from '../base/error.ts'
import { fields } from '../repository/git/git-runner.ts'
import { HostGit } from '../repository/git/host-git.ts'
import type { Accepted } from './accepted.ts'
import type { Change } from './change.ts'
import { unlocked } from './entry.ts'
import type { HostRepository } from './host-repository.ts'
import { type OpenDirectories, parentOf } from './open-directories.ts'
import { isCopiedUp } from './overlay-marks.ts'

export interface DeletedOptions {
  readonly directories: OpenDirectories
  readonly repository: HostRepository | undefined
  /** The commit of HEAD when the layer was made. */
  readonly base: string | null
  readonly accepted: Accepted
  /** A directory for the host's git, which is made here. */
  readonly empty: string
}

/** A file that was moved and has a name of the base commit counts as deleted: the user decides. */
export async function markDeleted(
  changes: readonly Change[],
  { directories, repository, base, accepted, empty }: DeletedOptions,
): Promise<readonly Change[]> {
  const copies = copiesIn(changes, directories)
  const isEdited = (change: Change): boolean =>
    change.kind === 'added' && change.after?.type === 'file' && copies.has(change)
  if (!changes.some(isEdited)) return changes
  /** It may be what another one was moved from. */
  const isSource = (change: Change): boolean =>
    change.before?.type === 'file' && change.kind !== 'mode' && !copies.has(change)
  const mayBeMoved = !accepted.isEmpty || changes.some(isSource)
  const known =
    mayBeMoved && repository !== undefined && base !== null
      ? await filesOf(base, repository, empty)
      : new Set()
  return changes.map(change =>
    isEdited(change) && (!mayBeMoved || known.has(change.path))
      ? { ...change, conflict: 'you deleted it after the sandbox started' }
      : change,
  )
}

/** Sorted by path, so that a directory comes before what is in it. In a new one, nothing was in this place. */
function copiesIn(changes: readonly Change[], directories: OpenDirectories): ReadonlySet<Change> {
  const copies = new Set<Change>()
  const made = new Set<string>()
  for (const change of changes) {
    const isInMade = made.has(parentOf(change.path))
    if (!isInMade && isCopy(change, directories)) copies.add(change)
    else if (change.kind === 'added' && change.after?.type === 'directory') made.add(change.path)
  }
  return copies
}

function isCopy({ path, after }: Change, directories: OpenDirectories): boolean {
  if (after?.type !== 'file' && after?.type !== 'directory') return false
  try {
    const { layer, name } = directories.find(path)
    return layer !== undefined && unlocked(layer, name, () => isCopiedUp(layer, name))
  } catch (error) {
    // The sandbox removed it in this moment.
    if (errnoOf(error) === undefined) throw error
    return false
  }
}

async function filesOf(base: string, { dir }: HostRepository, empty: string): Promise<ReadonlySet<string>> {
  using host = new HostGit(dir, empty)
  const { stdout } = await host.run({ script: 'git ls-tree -r -z --name-only "$1"', args: [base] })
  return new Set(fields(stdout))
}

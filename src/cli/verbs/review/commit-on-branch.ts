import { PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { HostGit } from '../../../repository/git/host-git.ts'
import type { Change } from '../../../review/change.ts'
import { commitChanges } from '../../../review/commit-changes.ts'
import { OpenDirectories } from '../../../review/open-directories.ts'
import type { Review } from '../../../review/open-review.ts'
import type { Prepared } from '../../../run/prepare.ts'
import { repositoryOptions } from '../../../run/repository-options.ts'

interface CommitOptions {
  readonly message: string
  readonly branch: string | undefined
  readonly prepared: Prepared
  readonly review: Review
}

/** The changes stay in the layer: the working tree does not have them. */
export async function commitOnBranch(
  changes: readonly Change[],
  { message, branch = newName(), prepared, review }: CommitOptions,
): Promise<{ readonly branch: string; readonly commit: string | null; readonly line: string }> {
  const git = repositoryOptions(prepared)?.git
  if (git === undefined)
    throw new PenError('STATE', { what: 'this project has no git repository', hint: 'pen accept' })
  if (changes.length === 0) return { branch, commit: null, line: 'nothing was committed' }
  const { workspace, tree, layer } = review.places
  using host = new HostGit(git.path, `${layer}/empty`)
  using directories = new OpenDirectories(workspace, tree, 'read')
  const identity = prepared.facts.gitIdentity
  const commit = await commitChanges(changes, {
    git: host.run,
    message,
    branch,
    identity,
    directories,
    scratch: layer,
  })
  const line = `${printable(branch)} has the changes now (${commit.slice(0, 10)}); the layer keeps them: pen discard`
  return { branch, commit, line }
}

/** Sorted by time. */
const newName = (): string => `pen/accept-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}`

import { PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { HostGit } from '../../../repository/git/host-git.ts'
import type { Change } from '../../../review/change.ts'
import { commitChanges, withoutIgnored } from '../../../review/commit-changes.ts'
import { OpenDirectories } from '../../../review/open-directories.ts'
import type { Review } from '../../../review/open-review.ts'
import { hostRepository } from '../../../run/open-review.ts'
import type { Prepared } from '../../../run/prepare.ts'

interface CommitOptions {
  readonly message: string
  readonly branch: string | undefined
  /** Paths that the user named. */
  readonly named: readonly string[]
  readonly prepared: Prepared
  readonly review: Review
}

/** The changes stay in the layer: the working tree does not have them. */
export async function commitOnBranch(
  agreed: readonly Change[],
  { message, branch = newName(), named, prepared, review }: CommitOptions,
): Promise<{ readonly branch: string; readonly commit: string | null; readonly lines: readonly string[] }> {
  const repository = hostRepository(prepared)
  if (repository === undefined)
    throw new PenError('STATE', { what: 'this project has no git repository', hint: 'pen accept' })
  if (review.ignoresUnknown !== undefined) throw review.ignoresUnknown
  const changes = withoutIgnored(agreed, named)
  const taken = new Set(changes)
  const ignored = agreed.filter(change => !taken.has(change) && change.after?.type !== 'directory').length
  const left =
    ignored === 0 ? [] : [`left out: ${ignored} that git ignores; name a path to commit it as well`]
  if (changes.length === 0) return { branch, commit: null, lines: ['nothing was committed', ...left] }
  const { workspace, tree, layer } = review.places
  using host = new HostGit(repository.dir, `${layer}/empty`)
  using directories = new OpenDirectories(workspace, tree, 'read')
  const identity = prepared.facts.gitIdentity
  const commit = await commitChanges(changes, {
    git: host.run,
    repository,
    message,
    branch,
    identity,
    directories,
    scratch: layer,
  })
  const line = `${printable(branch)} has the changes now (${commit.slice(0, 10)}); the layer keeps them: pen discard`
  return { branch, commit, lines: [line, ...left] }
}

/** Sorted by time. */
const newName = (): string => `pen/accept-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}`

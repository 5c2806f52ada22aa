/** The review layer of the sandbox that a command works on. */
import type { Lock } from '../config/lock.ts'
import type { Project } from '../config/project.ts'
import { whileAlone } from '../protect/while-alone.ts'
import { isOfReview } from '../repository/own-repository.ts'
import { ownDirectories, pendingIn } from '../repository/pending.ts'
import type { HostRepository } from '../review/host-repository.ts'
import { openReview, type Review } from '../review/open-review.ts'
import { type Prepared, prepareToLook } from './prepare.ts'
import { adoptOptions, repositoryOptions } from './repository-options.ts'

export interface ReviewOfProject {
  readonly prepared: Prepared
  readonly review: Review
  /** What an accept of everything brings to the host's repository, for the user. */
  readonly commits: readonly string[]
}

export async function reviewOfProject(
  project: Project,
  env: Readonly<Record<string, string | undefined>>,
  lock?: Lock,
): Promise<ReviewOfProject> {
  const prepared = await prepareToLook(project, env)
  const repository = hostRepository(prepared)
  const review = await openReview({ ...adoptOptions(prepared), repository }, lock)
  return { prepared, review, commits: await reviewedCommits(prepared) }
}

/** What the user changed since is not merged in: a conflict stays one. */
export async function reviewAsMade(
  project: Project,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ReviewOfProject> {
  const prepared = await prepareToLook(project, env)
  const review = await openReview({ ...adoptOptions(prepared), repository: undefined })
  return { prepared, review, commits: await reviewedCommits(prepared) }
}

export function hostRepository(prepared: Prepared): HostRepository | undefined {
  const { git, records } = prepared.facts.repository
  return git === undefined ? undefined : { dir: git.path, record: records[0] ?? '.' }
}

/** A sandbox may damage its git directory. Then no commit is accepted. */
export const UNREADABLE = 'the git directory of the sandbox cannot be read: its commits stay in it'

export async function reviewedCommits(prepared: Prepared): Promise<readonly string[]> {
  const options = repositoryOptions(prepared)
  const own = ownDirectories(prepared.loaded.project.stateDir).find(({ entry }) => isOfReview(entry))
  if (options === undefined || own === undefined) return []
  try {
    const pending = await pendingIn({ ...options, ...own, heldPaths: [] })
    return pending.map(
      ({ name, what, commit }) => `${name}: ${what}${commit === undefined ? '' : ` (${commit})`}`,
    )
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return [UNREADABLE]
  }
}

/** Undefined, and no work done, while a sandbox of the project runs. None starts meanwhile. */
export const whileNoneRuns = <T>(project: Project, work: () => Promise<T>): Promise<T | undefined> =>
  whileAlone(project.shared.stateDir, [], work)

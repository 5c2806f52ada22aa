/** The review layer of the sandbox that a command works on. */
import type { Lock } from '../config/lock.ts'
import type { Project } from '../config/project.ts'
import { openReview, type Review } from '../review/open-review.ts'
import { type Prepared, prepare } from './prepare.ts'
import { adoptOptions, repositoryOptions } from './repository-options.ts'

export interface ReviewOfProject {
  readonly prepared: Prepared
  readonly review: Review
}

export async function reviewOfProject(
  project: Project,
  env: Readonly<Record<string, string | undefined>>,
  lock?: Lock,
): Promise<ReviewOfProject> {
  const prepared = await prepare({
    project,
    command: [],
    env,
    allowUserExpansion: false,
    offline: true,
    flags: {},
  })
  const gitDir = repositoryOptions(prepared)?.git.path
  return { prepared, review: await openReview({ ...adoptOptions(prepared), gitDir }, lock) }
}

import type { Project } from '../../../config/project.ts'
import { asideIn, ownDirectories, type Pending, pendingIn } from '../../../repository/pending.ts'
import type { SyncAllOptions } from '../../../repository/sync-all.ts'
import { type Prepared, prepareToLook } from '../../../run/prepare.ts'
import { repositoryOptions } from '../../../run/repository-options.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'git status',
  summary: 'Show what git has only in the sandbox',
  details:
    'A sandbox has a git directory of its own. Lists refs that are not on the host yet, refs that were deleted inside, an unfinished rebase, merge, pick or bisect, and commits that were put aside below refs/pen.',
  examples: {
    'pen git status': 'show what is not on the host yet',
    'pen git status --json': 'print JSON',
  },
  async run({ env, project, answer }) {
    const { prepared, repositories } = await ownRepositories(project, env)
    const aside = await putAside(prepared)
    const pending = [...(await Promise.all(repositories.map(pendingIn))).flat(), ...aside]
    const lines = pending
      .slice(0, MAX_LINES)
      .map(
        ({ name, what, commit }) =>
          `${name}: ${what}${commit === undefined ? '' : ` (${commit.slice(0, 10)})`}`,
      )
    const more = pending.length - lines.length
    if (more > 0) lines.push(`… and ${more} more: pen git status --json`)
    if (aside.length > 0) lines.push('to merge what was put aside: pen git import --merge')
    answer({ version: 1, pending }, lines.length === 0 ? 'nothing: everything is on the host' : lines)
    return undefined
  },
})

const MAX_LINES = 100

/** What no ref of the user's has. */
export async function putAside(prepared: Prepared): Promise<readonly Pending[]> {
  const options = repositoryOptions(prepared)
  return options === undefined ? [] : await asideIn(options, `${options.world.sandbox.stateDir}/git/empty`)
}

/** Of sandboxes that run, and of those that left something. */
export async function ownRepositories(
  project: Project,
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly prepared: Prepared; readonly repositories: readonly SyncAllOptions[] }> {
  const prepared = await prepareToLook(project, env)
  const options = repositoryOptions(prepared)
  if (options === undefined) return { prepared, repositories: [] }
  const places = ownDirectories(options.world.sandbox.stateDir)
  // A file of a sandbox may lie at a protected place right now: nothing counts as the user's own.
  return { prepared, repositories: places.map(place => ({ ...options, ...place, heldPaths: [] })) }
}

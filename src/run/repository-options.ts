/** What a run and `pen git` need to know about the sandbox's own git directory. */
import type { OwnOptions } from '../repository/own-repository.ts'
import type { Prepared } from './prepare.ts'

/** Undefined where the project has no repository that works inside. */
export function repositoryOptions({ plan, facts, loaded }: Prepared): OwnOptions | undefined {
  const { git, records, emptyModules, protect } = facts.repository
  if (git === undefined) return undefined
  const { project, policy } = loaded
  return {
    git,
    records,
    emptyModules: emptyModules.length,
    workspace: plan.workspace,
    protectedPaths: policy.files.protect.map(({ rule }) => rule.path),
    heldPaths: protect.map(({ path }) => path),
    world: {
      facts,
      sandbox: { id: project.id, stateDir: project.stateDir },
      cacheDir: `${project.world.state}/cache`,
    },
  }
}

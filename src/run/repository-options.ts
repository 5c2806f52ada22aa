/** What a run and `pen git` need to know about the sandbox's own git directory. */
import type { AdoptOptions } from '../repository/adopt.ts'
import type { OwnOptions } from '../repository/own-repository.ts'
import type { Prepared } from './prepare.ts'

/** Undefined where the project has no repository that works inside. */
export function repositoryOptions(prepared: Prepared): OwnOptions | undefined {
  const { git, records, emptyModules } = prepared.facts.repository
  return git && { git, records, emptyModules: emptyModules.length, ...adoptOptions(prepared) }
}

/** For a project without a repository. */
export function adoptOptions({ plan, facts, loaded }: Prepared): AdoptOptions {
  const { project, policy } = loaded
  return {
    workspace: plan.workspace,
    protectedPaths: policy.files.protect.map(({ rule }) => rule.path),
    heldPaths: facts.repository.protect.map(({ path }) => path),
    world: {
      facts,
      sandbox: { id: project.id, stateDir: project.stateDir },
      cacheDir: `${project.world.state}/cache`,
    },
  }
}

/** What a run and `pen git` need to know about the sandbox's own git directory. */
import { decideFile } from '../policy/files/decide-file.ts'
import type { HostPath } from '../policy/files/path.ts'
import type { AdoptOptions } from '../repository/adopt/adopt.ts'
import type { OwnOptions } from '../repository/own-repository.ts'
import type { Prepared } from './prepare.ts'

/** Undefined where the project has no repository that works inside. */
export function repositoryOptions(prepared: Prepared): OwnOptions | undefined {
  const { git, records, emptyModules } = prepared.facts.repository
  if (git === undefined) return undefined
  const mounted = [git.path, ...emptyModules, ...heldPointers(prepared)]
  return { git, records, emptyModules, mounted, ...adoptOptions(prepared) }
}

/** Each `.git` that a mount holds. */
export const heldPointers = ({ facts }: Prepared): readonly string[] =>
  facts.repository.protect.flatMap(({ path }) => (path.endsWith('/.git') ? [path] : []))

/** For a project without a repository. The one that a sandbox made is the project's, whichever sandbox it was. */
export function adoptionOptions(prepared: Prepared): AdoptOptions {
  const options = adoptOptions(prepared)
  return { ...options, world: { ...options.world, sandbox: prepared.loaded.project.shared } }
}

/** Of the sandbox itself. */
export function adoptOptions({ plan, facts, loaded }: Prepared): AdoptOptions {
  const { project, policy } = loaded
  const { protect, watch } = facts.repository
  return {
    workspace: plan.workspace,
    // The survey adds what the repository's settings lead to, and the targets of links.
    protectedPaths: [...policy.files.protect.map(({ rule }) => rule), ...protect, ...watch].map(
      ({ path }) => path,
    ),
    heldPaths: protect.map(({ path }) => path),
    mayWrite: path => decideFile(policy, path as HostPath, 'write').ok,
    world: {
      facts,
      sandbox: { id: project.id, stateDir: project.stateDir },
      cacheDir: `${project.world.state}/cache`,
      limits: plan.limits,
    },
  }
}

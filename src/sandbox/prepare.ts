/** From a place and a command to a plan: everything before anything acts. */
import type { Backend } from '../backend/backend.ts'
import { chooseBackend } from '../backend/probe.ts'
import { type Loaded, loadPolicy } from '../config/load.ts'
import { findProject, type Project } from '../config/project.ts'
import { buildPlan } from '../plan/build.ts'
import type { Plan } from '../plan/plan.ts'
import { type GuestPath, isWithin } from '../policy/path.ts'
import { type Surveyed, surveyHost } from './survey.ts'

export interface PrepareOptions {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly allowUserExpansion: boolean
  readonly offline: boolean
  /** What the command line says, once the project is known. */
  readonly flags: (project: Project) => object
}

export interface Prepared {
  readonly loaded: Loaded
  readonly facts: Surveyed
  readonly plan: Plan
  readonly backend: Backend
}

export async function prepare(options: PrepareOptions): Promise<Prepared> {
  const project = findProject()
  const loaded = await loadPolicy(project, {
    flags: options.flags(project),
    allowUserExpansion: options.allowUserExpansion,
    offline: options.offline,
  })
  const backend = await chooseBackend(loaded.policy)
  const capabilities = await backend.probe()
  const facts = surveyHost(loaded.policy, project, options.env)
  const { workspace } = project.world
  const cwd = (isWithin(project.cwd, workspace) ? project.cwd : workspace) as string as GuestPath
  return {
    loaded,
    backend,
    facts,
    plan: buildPlan(loaded.policy, facts, capabilities, { argv: options.command, cwd }),
  }
}

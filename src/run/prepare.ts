/** Loads the policy, chooses a backend, surveys the host and builds the plan. It only reads: nothing is started or written. */
import type { Backend } from '../backend/backend.ts'
import { chooseBackend } from '../backend/probe.ts'
import { type ErrorCode, PenError } from '../base/error.ts'
import { phase } from '../base/phases.ts'
import { type Loaded, type LoadOptions, loadPolicy } from '../config/load.ts'
import type { Project } from '../config/project.ts'
import { buildPlan } from '../plan/build.ts'
import type { Plan } from '../plan/plan.ts'
import { type GuestPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { NamedDocument } from '../policy/presets.ts'
import { REVIEW, STAYS } from '../repository/own-repository.ts'
import { type Surveyed, surveyHost } from '../survey/survey.ts'
import type { BackendChoice } from './choose-backend.ts'
import { liveState } from './live-files.ts'

export interface PrepareOptions {
  readonly project: Project
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly allowUserExpansion: boolean
  readonly offline: boolean
  /** For a sandbox that stays. `before` is the backend of its last start; null for a new sandbox. */
  readonly stays?: { readonly before: string | null }
  /** The preset that the user chose by name. */
  readonly preset?: NamedDocument
  /** The policy layer of the command line. */
  readonly flags: object
}

export interface Prepared {
  /** How the policy was loaded, so that a live edit is read the same way. */
  readonly load: LoadOptions
  /** The state of the live config files before they were read. */
  readonly seen: string
  readonly loaded: Loaded
  readonly facts: Surveyed
  readonly plan: Plan
  readonly backend: Backend
  /** Another backend to suggest when this one fails. */
  readonly alternative: string | undefined
}

/** What is known before the host is surveyed: enough to begin slow work early. */
export interface Chosen {
  readonly backend: Backend
  readonly policy: Policy
  readonly cacheDir: string
}

/** `onChosen` is called as soon as the backend is chosen, while the rest is still being prepared. */
export async function prepare(
  options: PrepareOptions,
  onChosen?: (chosen: Chosen) => void,
): Promise<Prepared> {
  const { project } = options
  const load: LoadOptions = {
    flags: options.flags,
    allowUserExpansion: options.allowUserExpansion,
    offline: options.offline,
    preset: options.preset,
  }
  const seen = liveState(project.shared.stateDir)
  const loaded = await loadPolicy(project, load)
  phase('policy loaded')
  const { policy } = loaded
  const cacheDir = `${project.world.state}/cache`
  const { backend, note, alternative }: BackendChoice =
    options.stays === undefined
      ? { backend: await chooseBackend(policy, { cacheDir }) }
      : // It needs the engines and the images, which `pen run` does not load.
        await (await import('./choose-backend.ts')).chooseStayingBackend(
          policy,
          project,
          options.stays.before,
        )
  onChosen?.({ backend, policy, cacheDir })
  const capabilities = await backend.probe(cacheDir).catch((error: unknown) => {
    throw withAlternative(error, alternative)
  })
  const review = policy.workspaceMode === 'review' && capabilities.review
  const own = review ? REVIEW : options.stays === undefined ? 'run' : STAYS
  const facts = surveyHost(policy, project, options.env, {
    homeWarnings: loaded.homeWarnings,
    ownRepository: capabilities.kernelFiles ? own : undefined,
    review,
  })
  phase('host surveyed')
  const { workspace } = project.world
  const cwd = (isWithin(project.cwd, workspace) ? project.cwd : workspace) as string as GuestPath
  const built = buildPlan(policy, facts, capabilities, { argv: options.command, cwd })
  phase('plan built')
  const plan: Plan = {
    ...built,
    notes: note === undefined ? built.notes : [...built.notes, note],
    weaker:
      options.stays === undefined || capabilities.daemonUser ? built.weaker : [...built.weaker, ONE_USER],
  }
  return { load, seen, loaded, backend, alternative, facts, plan }
}

/** For a command that starts no sandbox: as the config has it, without flags. */
export const prepareToLook = (project: Project, env: PrepareOptions['env']): Promise<Prepared> =>
  prepare({ project, command: [], env, allowUserExpansion: false, offline: true, flags: {} })

const ONE_USER = {
  name: 'daemon-user',
  how: 'commands run as the same user as the exec daemon: a command that kills it ends the sandbox',
}

/** Failures that another backend may not have. */
const FAILURES: readonly ErrorCode[] = ['MISSING_TOOL', 'BACKEND', 'IMAGE']

/** Adds the alternative to the hint of the backend's own error. */
export function withAlternative(error: unknown, alternative: string | undefined): unknown {
  if (alternative === undefined || !(error instanceof PenError) || !FAILURES.includes(error.code))
    return error
  const { code, message: what, at, hint } = error
  return new PenError(code, {
    what,
    hint: hint === undefined ? alternative : `${hint}; ${alternative}`,
    ...(at !== undefined && { at }),
    cause: error,
  })
}

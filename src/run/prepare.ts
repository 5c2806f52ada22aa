/** From a place and a command to a plan: everything before anything acts. */
import type { Backend } from '../backend/backend.ts'
import { chooseBackend } from '../backend/probe.ts'
import { PenError } from '../base/error.ts'
import { phase } from '../base/phases.ts'
import { rememberChildren } from '../base/remember-children.ts'
import { type Loaded, type LoadOptions, loadPolicy } from '../config/load.ts'
import { findProject, type Project } from '../config/project.ts'
import type { Door } from '../gateway/netns/door.ts'
import type { DoorLocation } from '../gateway/netns/namespace.ts'
import { buildPlan } from '../plan/build.ts'
import type { Plan } from '../plan/plan.ts'
import { type GuestPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { NamedDocument } from '../policy/preset-layer.ts'
import { type Surveyed, surveyHost } from '../survey/survey.ts'
import { chooseKeptBackend, type KeptBackend, withWay } from './choose-backend.ts'
import { leaveNote } from './instructions.ts'
import { liveState } from './live-files.ts'

export interface PrepareOptions {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly allowUserExpansion: boolean
  readonly offline: boolean
  /** False for a plan that is only shown. */
  readonly toRun: boolean
  /** For a sandbox that stays, and is entered many times. */
  readonly toKeep?: boolean
  /** The backend that such a sandbox had before; null for a new one. */
  readonly backend?: string | null
  /** What the person chose by its name. */
  readonly preset?: NamedDocument
  /** What the command line says, once the project is known. */
  readonly flags: (project: Project) => object
}

export interface Prepared {
  /** What the policy was loaded with, so that a live edit is read the same way. */
  readonly load: LoadOptions
  /** The files of the live config as they were before they were read. */
  readonly seen: string
  /** Being opened meanwhile, when the policy wants a gateway, something is to be run and the namespace is pen's to make. */
  readonly door: Promise<Door> | undefined
  readonly loaded: Loaded
  readonly facts: Surveyed
  readonly plan: Plan
  readonly backend: Backend
  /** What to do where the backend fails. */
  readonly way: string | undefined
}

export async function prepare(options: PrepareOptions): Promise<Prepared> {
  if (options.toRun) rememberChildren()
  const project = findProject()
  const load: LoadOptions = {
    flags: options.flags(project),
    allowUserExpansion: options.allowUserExpansion,
    offline: options.offline,
    preset: options.preset,
  }
  const seen = liveState(project.stateDir)
  const loaded = await loadPolicy(project, load)
  phase('policy loaded')
  const { network } = loaded.policy
  const cacheDir = `${project.world.state}/cache`
  const { backend, note, way }: KeptBackend =
    options.toKeep === true
      ? await chooseKeptBackend(loaded.policy, project, options.backend ?? null)
      : { backend: await chooseBackend(loaded.policy, { cacheDir }) }
  const opensFirst = options.toRun && backend.container !== true
  const wantsDoor = backend.loopback === true || (network.mode === 'gateway' && !network.offline)
  const door = opensFirst && wantsDoor ? openFirst(backend, loaded.policy) : undefined
  if (options.toRun) backend.warm?.(cacheDir)
  const capabilities = await backend.probe(cacheDir).catch((error: unknown) => {
    throw withWay(error, way)
  })
  const facts = surveyHost(loaded.policy, project, options.env, loaded.homeWarnings)
  phase('host surveyed')
  if (options.toRun && backend.container !== true) leaveNote(facts)
  const { workspace } = project.world
  const cwd = (isWithin(project.cwd, workspace) ? project.cwd : workspace) as string as GuestPath
  const built = buildPlan(loaded.policy, facts, capabilities, { argv: options.command, cwd })
  phase('plan built')
  const plan = note === undefined ? built : { ...built, notes: [...built.notes, note] }
  const hasAgent = options.toKeep === true && backend.container !== true
  return {
    load,
    seen,
    loaded,
    door,
    backend,
    way,
    facts,
    plan: hasAgent ? { ...plan, weaker: [...plan.weaker, ONE_USER] } : plan,
  }
}

/** A container has a user for the exec daemon alone. */
const ONE_USER = {
  name: 'agent-user',
  how: 'the exec daemon that starts commands is the same user as they are: one that ends it ends the sandbox',
}

/** Without a namespace also where the policy has no network: then the proxy refuses all, and says why. */
function openFirst(backend: Backend, policy: Policy): Promise<Door> {
  if (backend.loopback !== true) return beginDoor(policy)
  const door = import('../gateway/proxy-door.ts').then(({ openProxyDoor }) => openProxyDoor())
  door.catch(() => undefined)
  return door
}

/** Its own modules are loaded only here: a sandbox without network does not pay for them. */
export function beginDoor(
  { network, acceptGaps }: Policy,
  location: DoorLocation = { kind: 'new' },
): Promise<Door> {
  const ports = network.allow.map(({ rule }) => rule.port)
  const door = import('../gateway/netns/door.ts')
    .then(({ openDoor }) => openDoor({ ports, location }))
    .then(opened => requireRecords(opened, acceptGaps))
  // Whoever awaits it hears of a failure; until then it must not count as unheard.
  door.catch(() => undefined)
  return door
}

/** A kernel that takes no rules shows it only when the door is open. */
function requireRecords(door: Door, accepted: readonly string[]): Door {
  if (door.recordsRefusals || accepted.includes(UNRECORDED)) return door
  door.close()
  throw new PenError('GAP', {
    what: `this machine cannot keep all of the policy: ${UNRECORDED} (the kernel did not take the rules of the packet filter, so ports that no rule names are refused without a record)`,
    hint: `accept by name with --accept-gap ${UNRECORDED}, or use a kernel with nf_tables`,
  })
}

const UNRECORDED = 'refusals-unrecorded'

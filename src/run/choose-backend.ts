/**
 * What a sandbox that stays is made of, where the policy leaves that open. It is a container where one is asked for, or where pen's own
 * image is built already; otherwise a process sandbox, which works at once on every machine.
 */
import type { Backend } from '../backend/backend.ts'
import { type EngineName, findEngine } from '../backend/container/engine/engine.ts'
import { chooseBackend } from '../backend/probe.ts'
import { type ErrorCode, PenError } from '../base/error.ts'
import type { Project } from '../config/project.ts'
import { hasOwnImage } from '../image/own-image.ts'
import { findCandidate } from '../image/recipe.ts'
import type { Policy } from '../policy/policy.ts'
import type { BackendName } from '../policy/settings.ts'

export interface KeptBackend {
  readonly backend: Backend
  /** For the user: that a container could be had, and how. */
  readonly note?: string
  /** What to do where the backend fails. */
  readonly way?: string
}

/** Without root first: what it runs has no power over the host. */
const ENGINES: readonly EngineName[] = ['podman', 'docker']
const NOTE = 'a process sandbox, with the programs of this machine; pen build makes the image for a container'

/** Of the machine, which another backend may not need. */
const FAILURES: readonly ErrorCode[] = ['MISSING_TOOL', 'BACKEND', 'IMAGE']

/** `before`: the backend that the sandbox had when it was started; null for a new one. */
export async function chooseKeptBackend(
  policy: Policy,
  project: Project,
  before: string | null,
): Promise<KeptBackend> {
  const cacheDir = `${project.world.state}/cache`
  // What had a container gets the same engine again, or none. A process sandbox may become a container.
  if (before !== null && isEngine(before)) {
    const backend = await chooseBackend(policy, { cacheDir, open: [before], before })
    return { backend, way: `the sandbox was started with ${before}: pen stop, then pen start, uses another` }
  }
  if (policy.backend !== 'any' || policy.isolation !== 'auto')
    return { backend: await chooseBackend(policy, { cacheDir }) }
  const open = await candidates(policy, project, cacheDir)
  const backend = await chooseBackend(policy, { cacheDir, open })
  if (backend.container === true) return { backend }
  const engine = ENGINES.find(name => isInstalled(name))
  if (engine === undefined) return { backend }
  return { backend, note: NOTE, way: `or use a container of ${engine}: pen start --isolation container` }
}

async function candidates(
  policy: Policy,
  project: Project,
  cacheDir: string,
): Promise<readonly BackendName[]> {
  // A runtime is named for its isolation: without an engine there is none.
  if (policy.runtime !== 'default') return ENGINES
  if (policy.image !== 'default' || findCandidate(policy, project) !== undefined)
    return [...ENGINES, 'process']
  for (const name of ENGINES) if (await hasOwnImage(name, policy, cacheDir)) return [name, 'process']
  return ['process']
}

const isEngine = (name: string): name is EngineName => ENGINES.some(engine => engine === name)

function isInstalled(name: EngineName): boolean {
  try {
    return findEngine(name) !== undefined
  } catch {
    // A Docker daemon elsewhere, which pen does not use.
    return false
  }
}

/** The backend's own reason, with one way out more. */
export function withWay(error: unknown, way: string | undefined): unknown {
  if (way === undefined || !(error instanceof PenError) || !FAILURES.includes(error.code)) return error
  const { code, message: what, at, hint } = error
  return new PenError(code, {
    what,
    hint: hint === undefined ? way : `${hint}; ${way}`,
    ...(at !== undefined && { at }),
    cause: error,
  })
}

/**
 * The backend of a sandbox that stays, where the policy leaves it open: a container if the user asked for one or pen's image is already
 * built. Otherwise a process sandbox, which works at once on every machine.
 */
import type { Backend } from '../backend/backend.ts'
import { ENGINE_NAMES, type EngineName, findEngine } from '../backend/container/engine/engine.ts'
import { chooseBackend } from '../backend/probe.ts'
import type { Project } from '../config/project.ts'
import { hasOwnImage } from '../image/image-for.ts'
import { findCandidate } from '../image/recipe.ts'
import type { Policy } from '../policy/policy.ts'
import type { BackendName } from '../policy/settings.ts'

export interface BackendChoice {
  readonly backend: Backend
  /** A line for the user: a container is possible, and how to get it. */
  readonly note?: string
  /** Another backend to suggest when this one fails. */
  readonly alternative?: string
}

const NOTE = 'a process sandbox, with the programs of this machine; pen build makes the image for a container'

/** `before` is the backend of the last start; null for a new sandbox. */
export async function chooseStayingBackend(
  policy: Policy,
  project: Project,
  before: string | null,
): Promise<BackendChoice> {
  const cacheDir = `${project.world.state}/cache`
  // A container gets the same engine again, or the start fails. A process sandbox may become a container.
  if (before !== null && isEngine(before)) {
    const backend = await chooseBackend(policy, { cacheDir, open: [before], before })
    return {
      backend,
      alternative: `the sandbox was started with ${before}: pen stop, then pen start, uses another`,
    }
  }
  if (policy.backend !== 'any' || policy.isolation !== 'auto')
    return { backend: await chooseBackend(policy, { cacheDir }) }
  const open = await candidates(policy, project, cacheDir)
  const backend = await chooseBackend(policy, { cacheDir, open })
  if (backend.engine !== undefined) return { backend }
  const engine = ENGINE_NAMES.find(name => isInstalled(name))
  if (engine === undefined) return { backend }
  return {
    backend,
    note: NOTE,
    alternative: `or use a container of ${engine}: pen start --isolation container`,
  }
}

async function candidates(
  policy: Policy,
  project: Project,
  cacheDir: string,
): Promise<readonly BackendName[]> {
  // The user named a runtime, and only engines have runtimes.
  if (policy.runtime !== 'default') return ENGINE_NAMES
  if (policy.image !== 'default' || findCandidate(policy, project) !== undefined)
    return [...ENGINE_NAMES, 'process']
  for (const name of ENGINE_NAMES) if (await hasOwnImage(name, policy, cacheDir)) return [name, 'process']
  return ['process']
}

const isEngine = (name: string): name is EngineName => ENGINE_NAMES.some(engine => engine === name)

function isInstalled(name: EngineName): boolean {
  try {
    return findEngine(name) !== undefined
  } catch {
    // The Docker daemon is on another machine, so pen does not use it.
    return false
  }
}

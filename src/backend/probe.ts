/** Chooses the backend that keeps what the policy asks for. Nothing weaker than what was named is ever taken. */
import { PenError } from '../base/error.ts'
import type { Policy } from '../policy/policy.ts'
import type { BackendName } from '../policy/settings.ts'
import { isFromUser } from '../policy/source.ts'
import type { Backend } from './backend.ts'
import { processBackend } from './process/process.ts'

type Load = (policy: Policy) => Promise<Backend>

const container =
  (engine: 'podman' | 'docker'): Load =>
  async policy =>
    (await import('./container/backends.ts')).containerBackend(engine, policy)

/** Every backend that exists; all but the usual one are loaded when they are needed. */
const BACKENDS: Partial<Record<BackendName, Load>> = {
  process: async () => processBackend,
  podman: container('podman'),
  docker: container('docker'),
  soft: async () => (await import('./soft/soft.ts')).softBackend,
}

/** Which backends give an isolation, the first that works on this machine. */
const WANTED: Readonly<Record<Policy['isolation'], readonly BackendName[]>> = {
  auto: ['process'],
  process: ['process'],
  container: ['podman', 'docker'],
  // By its name alone: nothing else leads here, whatever is missing.
  soft: ['soft'],
  gvisor: ['podman'],
  vm: [],
}

/** By which names a user may ask for them. */
export const AVAILABLE_BACKENDS = Object.keys(BACKENDS)
export const AVAILABLE_ISOLATIONS = Object.entries(WANTED).flatMap(([name, backends]) =>
  backends.some(backend => BACKENDS[backend] !== undefined) ? [name] : [],
)

export interface Choice {
  /** What was found out of this machine before. */
  readonly cacheDir?: string
  /** Where the policy leaves the isolation open: what to try, in this order. */
  readonly open?: readonly BackendName[]
  /** The backend that the sandbox had before, where it may have no other now. */
  readonly before?: string | null
}

export async function chooseBackend(
  policy: Policy,
  { cacheDir, open = WANTED.auto, before = null }: Choice = {},
): Promise<Backend> {
  const wanted = policy.isolation === 'auto' ? open : WANTED[policy.isolation]
  const same = wanted.filter(name => name === before)
  const names = policy.backend !== 'any' ? [policy.backend] : same.length > 0 ? same : wanted
  const loads = names.flatMap(name => BACKENDS[name] ?? [])
  if (loads.length === 0) throw notAvailable(policy)
  if (
    policy.backend !== 'any' &&
    policy.isolation !== 'auto' &&
    !WANTED[policy.isolation].includes(policy.backend)
  )
    throw new PenError('BACKEND', {
      what: `backend "${policy.backend}" does not give isolation "${policy.isolation}"`,
      hint: 'name one of the two, not both',
    })
  if (names.includes('soft')) requireOwnChoice(policy)
  return await firstThatWorks(await Promise.all(loads.map(load => load(policy))), cacheDir)
}

/** A project that may add to the policy may still not take the walls away. */
function requireOwnChoice({ backend, sources }: Policy): void {
  if (isFromUser(sources.get(backend === 'any' ? 'isolation' : 'backend'))) return
  throw new PenError('BACKEND', {
    what: 'a sandbox that no kernel confines is chosen by you alone, and this choice is the project’s',
    hint: 'add --isolation soft to the command, if you mean it',
  })
}

const notAvailable = (policy: Policy): PenError =>
  new PenError('BACKEND', {
    what:
      policy.backend === 'any'
        ? `isolation "${policy.isolation}" is not available in this version of pen`
        : `backend "${policy.backend}" is not available in this version of pen`,
    hint: `available: ${AVAILABLE_BACKENDS.join(', ')}; pen never takes a weaker one by itself`,
  })

/** Where there is a choice, the rest is asked only when the first does not work; its own reason is then the one to tell. */
async function firstThatWorks(
  [first, ...rest]: readonly Backend[],
  cacheDir: string | undefined,
): Promise<Backend> {
  if (first === undefined) throw new PenError('INTERNAL', { what: 'no backend was chosen' })
  if (rest.length === 0) return first
  let reason: unknown
  for (const backend of [first, ...rest])
    try {
      await backend.probe(cacheDir)
      return backend
    } catch (error) {
      reason ??= error
    }
  throw reason
}

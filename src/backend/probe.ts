/** Chooses the backend that gives the isolation of the policy. It never falls back to a weaker one. */
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

/** Every backend. All but the default one are loaded on use. */
const BACKENDS: Partial<Record<BackendName, Load>> = {
  process: async () => processBackend,
  podman: container('podman'),
  docker: container('docker'),
  soft: async () => (await import('./soft/soft.ts')).softBackend,
  vm: async policy => (await import('./vm/vm.ts')).vmBackend(policy),
}

/** The backends that give an isolation. The first one that works on this machine is used. */
const WANTED: Readonly<Record<Policy['isolation'], readonly BackendName[]>> = {
  auto: ['process'],
  process: ['process'],
  container: ['podman', 'docker'],
  // Used only when the user names it, never as a fallback.
  soft: ['soft'],
  gvisor: ['podman'],
  vm: ['vm'],
}

/** The names that a user may give. */
export const AVAILABLE_BACKENDS = Object.keys(BACKENDS)
export const AVAILABLE_ISOLATIONS = Object.entries(WANTED).flatMap(([name, backends]) =>
  backends.some(backend => BACKENDS[backend] !== undefined) ? [name] : [],
)

export interface Choice {
  /** Where results of earlier probes are kept. */
  readonly cacheDir?: string
  /** The backends to try, in this order, when the policy does not set the isolation. */
  readonly open?: readonly BackendName[]
  /** The backend of the sandbox's last start, when the sandbox may not change it. */
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
      hint: 'set only one of the two',
    })
  if (names.includes('soft')) requireOwnChoice(policy)
  return await firstThatWorks(await Promise.all(loads.map(load => load(policy))), cacheDir)
}

/** The `prepareFiles` of the backend that the policy names. Probes nothing. */
export async function filesToPrepare(policy: Policy): Promise<Backend['prepareFiles']> {
  const [name, ...more] = policy.backend === 'any' ? WANTED[policy.isolation] : [policy.backend]
  const backend = more.length > 0 || name === undefined ? undefined : await BACKENDS[name]?.(policy)
  return backend?.prepareFiles
}

/** A project may extend the policy, but it may not choose a sandbox without kernel isolation. */
function requireOwnChoice({ backend, sources }: Policy): void {
  if (isFromUser(sources.get(backend === 'any' ? 'isolation' : 'backend'))) return
  throw new PenError('BACKEND', {
    what: 'only you can choose a sandbox without kernel isolation, and the project’s config chose this one',
    hint: 'add --isolation soft to the command to confirm it',
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

/** With several candidates, later ones are tried only when the first fails. The error is then that of the first. */
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

/**
 * Every engine that this machine can have, as a backend of the claims: podman and Docker, as root and as an
 * ordinary user.
 */
import { dockerMissing, sharedDockerd } from '../engines/dockerd.ts'
import { podmanMissing, podmanOf } from '../engines/podman.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import type { Who } from './launcher.ts'
import { seedOf } from './seed.ts'
import { ANY_BACKEND, type TestBackend, type Trait } from './test-backend.ts'

/** Started once per test process, and ended with it. To run one alone: PEN_ENGINE='docker, as root'. */
export async function containerBackends(everybody: readonly Who[]): Promise<TestBackend[]> {
  const wanted = process.env['PEN_ENGINE'] ?? ''
  const backends = (await enginesHere(everybody)).filter(({ name }) => name.includes(wanted))
  // pen builds its image when it is missing. No test should wait for that.
  for (const backend of backends) if (backend.missing === undefined) seedOf(backend)
  return backends
}

async function enginesHere(everybody: readonly Who[]): Promise<TestBackend[]> {
  const podmans = everybody.map(who => {
    const missing = podmanMissing(who)
    return missing === undefined ? backendOf(podmanOf(who)) : absent(`podman, as ${who.name}`, who, missing)
  })
  // For the last of them, so that its socket belongs to an ordinary user's group. Root needs none.
  const member = everybody.at(-1)
  if (member === undefined) return podmans
  const missing = dockerMissing()
  if (missing !== undefined)
    return [...podmans, ...everybody.map(who => absent(`docker, as ${who.name}`, who, missing))]
  const dockerd = await sharedDockerd(member)
  return [...podmans, ...everybody.map(who => backendOf(dockerd.as(who)))]
}

const backendOf = ({ backend, who, env }: TestEngine): TestBackend => ({
  name: `${backend}, as ${who.name}`,
  who,
  ...ANY_BACKEND,
  backend,
  isolation: 'container',
  flags: ['--backend', backend, '--offline'],
  env,
  traits: new Set<Trait>([
    'hostKernel',
    ...(backend === 'podman' ? (['callersMounts'] as const) : []),
    ...(backend === 'podman' && who.uid !== 0 ? (['ownUserNamespace'] as const) : (['laterMounts'] as const)),
  ]),
})

const absent = (name: string, who: Who, missing: string): TestBackend => ({
  name,
  who,
  ...ANY_BACKEND,
  missing,
})

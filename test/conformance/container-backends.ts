/** Every engine that this machine can have, as a backend of the claims: podman with and without root, and Docker. */
import { dockerMissing, startDockerd } from '../engines/dockerd.ts'
import { podmanMissing, podmanOf } from '../engines/podman.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import type { Who } from './launcher.ts'
import { seedOf } from './seed.ts'
import { ANY_BACKEND, type TestBackend, type Trait } from './test-backend.ts'

/** Started once for all tests of a process, and ended with it. */
export async function containerBackends(everybody: readonly Who[]): Promise<TestBackend[]> {
  const backends = await enginesHere(everybody)
  // pen builds its image when it is missing: no test is to wait for that.
  for (const backend of backends) if (backend.missing === undefined) seedOf(backend)
  return backends
}

async function enginesHere(everybody: readonly Who[]): Promise<TestBackend[]> {
  const podmans = everybody.map(who => {
    const missing = podmanMissing(who)
    return missing === undefined ? backendOf(podmanOf(who)) : absent(`podman, as ${who.name}`, who, missing)
  })
  const [me] = everybody
  if (me === undefined) return podmans
  const missing = dockerMissing()
  if (missing !== undefined) return [...podmans, absent(`docker, as ${me.name}`, me, missing)]
  const dockerd = await startDockerd(me)
  process.once('exit', () => dockerd.stopNow())
  return [...podmans, backendOf(dockerd)]
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
    ...(backend === 'podman' ? (['callersMounts'] as const) : []),
    ...(who.uid === 0 ? (['laterMounts'] as const) : (['ownUserNamespace'] as const)),
  ]),
})

const absent = (name: string, who: Who, missing: string): TestBackend => ({
  name,
  who,
  ...ANY_BACKEND,
  missing,
})

/** Chooses the engine for a build: the one in the policy, else the first that answers. */
import {
  type Engine,
  type EngineName,
  findEngine,
  requireEngine,
  tryEngine,
} from '../backend/container/engine/engine.ts'
import { PenError } from '../base/error.ts'
import type { Policy } from '../policy/policy.ts'

/** Rootless first: its builds and containers have no power over the host. */
const ENGINES: readonly EngineName[] = ['podman', 'docker']

export async function chooseEngine({ backend }: Policy): Promise<Engine> {
  const named = ENGINES.find(name => name === backend)
  if (named !== undefined) return requireEngine(named)
  if (backend !== 'any')
    throw new PenError('BACKEND', {
      what: `backend "${backend}" has no images`,
      hint: `name one that has: ${ENGINES.map(name => `--backend ${name}`).join(' or ')}`,
    })
  for (const name of ENGINES) {
    const engine = findEngine(name)
    if (engine !== undefined && (await tryEngine(engine, ['info'])).code === 0) return engine
  }
  throw new PenError('MISSING_TOOL', {
    what: 'no container engine answers on this machine',
    hint: 'install podman; what is missing: pen doctor',
  })
}

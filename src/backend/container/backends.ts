/** The two engines as backends: what each gives on this machine, and the same container for both. */
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { isHostRoot } from '../../base/host-root.ts'
import type { CgroupLimit } from '../../limits/cgroup.ts'
import { engineMeans } from '../../limits/engine-cgroup.ts'
import { boundsProcessesByNamespace } from '../../limits/probe.ts'
import type { Capabilities, Hold } from '../../plan/gaps.ts'
import type { Backend } from '../backend.ts'
import { holdMapping } from '../mounts/id-mapping.ts'
import { type Engine, type EngineName, requireEngine } from './engine.ts'
import { type EngineFacts, engineFacts } from './engine-facts.ts'
import { agentProgram } from './loader.ts'
import { startContainer } from './start.ts'

/** `runtime` is the policy's. */
export function containerBackend(name: EngineName, runtime: string | 'default'): Backend {
  let asked: { readonly engine: Engine; readonly facts: EngineFacts } | undefined
  const ask = async (cacheDir?: string) => {
    if (asked !== undefined) return asked
    const engine = requireEngine(name)
    if (name === 'docker') refuseForeignDaemon()
    const facts = await engineFacts(engine, cacheDir)
    if (facts.rootless === isHostRoot()) throw notEntered(name)
    asked = { engine, facts }
    return asked
  }
  return {
    name,
    container: true,
    engine: () => requireEngine(name),
    warm: () => {
      void agentProgram()
      if (isHostRoot()) holdMapping()
    },
    probe: async cacheDir => capabilities(name, (await ask(cacheDir)).facts),
    bounds: () => engineMeans(new Set(asked?.facts.held ?? [])),
    start: async (plan, options) =>
      await startContainer({ ...(await ask(options.cacheDir)), runtime }, plan, options),
  }
}

/** What a daemon makes is root's: an ordinary user cannot enter it, so there would be no door and no protected place. */
function refuseForeignDaemon(): void {
  if (!isHostRoot())
    throw new PenError('BACKEND', {
      what: 'the Docker daemon makes its containers as root, and an ordinary user may not enter them to guard files and network',
      hint: 'use rootless podman (backend "podman"), or run pen as root',
    })
}

const notEntered = (name: EngineName): PenError =>
  new PenError('BACKEND', {
    what: `this ${name} makes its containers as another user than pen's, who may not enter them`,
    hint: 'run pen as the user to whom the engine belongs',
  })

function capabilities(name: EngineName, { rootless, held }: EngineFacts): Capabilities {
  const hold = (limit: CgroupLimit): Hold => (held.includes(limit) ? 'kernel' : 'watchdog')
  return {
    backend: name,
    isolation: 'container',
    kernelFiles: true,
    networkNamespace: true,
    gateway: true,
    recordsRefusals: findTool('nft') !== undefined,
    bridge: true,
    seccomp: true,
    listedExec: false,
    images: true,
    // Without a user namespace an id is the same inside and on the host.
    mapsUser: rootless,
    ports: false,
    limits: {
      memory: hold('memory'),
      cpus: hold('cpus'),
      pids: rootless && boundsProcessesByNamespace() ? 'kernel' : hold('pids'),
      files: 'kernel',
      disk: 'watchdog',
      output: 'watchdog',
      wall: 'watchdog',
    },
  }
}

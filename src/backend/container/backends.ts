/** The engines podman and Docker as backends. Both start the same container. */

import { PenError } from '../../base/error.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { landlockAbi } from '../../base/kernel/kernel-facts.ts'
import { startTimeOf } from '../../base/kernel/processes.ts'
import { engineSupport } from '../../limits/engine-cgroup.ts'
import { boundsProcessesByNamespace, enforcementOf } from '../../limits/probe.ts'
import type { Capabilities } from '../../plan/gaps.ts'
import type { Policy } from '../../policy/policy.ts'
import type { Backend } from '../backend.ts'
import { prepareMapping } from '../mounts/id-mapping.ts'
import { type Engine, type EngineName, requireEngine } from './engine/engine.ts'
import { type EngineFacts, engineFacts } from './engine/engine-facts.ts'
import { GVISOR_LIMITS, GVISOR_RUNTIME, gvisorFlags } from './engine/gvisor.ts'
import { guestProgram } from './guest-program.ts'
import { startContainer } from './start.ts'

/** `runtime` and `isolation` come from the policy. */
export function containerBackend(
  name: EngineName,
  { runtime: named, isolation }: Pick<Policy, 'runtime' | 'isolation'>,
): Backend {
  const gvisor = isolation === 'gvisor' || named === GVISOR_RUNTIME
  const runtime = gvisor ? GVISOR_RUNTIME : named
  let asked: { readonly engine: Engine; readonly facts: EngineFacts } | undefined
  const ask = async (cacheDir?: string) => {
    if (asked !== undefined) return asked
    const engine = requireEngine(name)
    if (gvisor) refuseWithoutGofer(name, named)
    const facts = await engineFacts(engine, cacheDir)
    if (name === 'docker') refuseForeign(facts)
    else if (facts.rootless === isHostRoot()) throw notEntered(name)
    if (gvisor) await gvisorFlags()
    asked = { engine, facts }
    return asked
  }
  return {
    name,
    network: 'made-by-backend',
    daemonOnly: true,
    slowStart: 'starting the container …',
    engine: () => requireEngine(name),
    warm: cacheDir => {
      void guestProgram(cacheDir)
      if (isHostRoot()) prepareMapping()
    },
    probe: async cacheDir => capabilities(name, (await ask(cacheDir)).facts, gvisor ? 'gvisor' : 'container'),
    bounds: () => engineSupport(new Set(asked?.facts.held ?? [])),
    start: async (plan, options) => {
      const byHelper = name === 'docker' && !isHostRoot()
      return await startContainer(
        { ...(await ask(options.cacheDir)), runtime, gvisor, byHelper },
        plan,
        options,
      )
    },
  }
}

/** Refuses a daemon that is not on this machine, that maps ids, or whose root is not the host's. */
export function refuseForeign({ rootless, mapped, here }: EngineFacts): void {
  if (!here)
    throw new PenError('BACKEND', {
      what: 'this Docker daemon runs on another machine or in a virtual machine, where pen cannot protect files',
      hint: 'use podman, or a Docker daemon of this machine (DOCKER_HOST=unix:///var/run/docker.sock)',
    })
  if (!isHostRoot() && startTimeOf(1) === undefined)
    throw new PenError('BACKEND', {
      what: 'this machine hides other users’ processes (/proc is mounted with hidepid), and Docker’s containers belong to root',
      hint: 'use rootless podman (backend "podman")',
    })
  if (!rootless && !mapped) return
  throw new PenError('BACKEND', {
    what: rootless
      ? 'this Docker daemon runs without root: files that a command makes in its containers would not be yours'
      : 'this Docker daemon maps ids (userns-remap): files that a command makes in its containers would not be yours',
    hint: 'use rootless podman (backend "podman"), or a root Docker daemon without userns-remap',
  })
}

const notEntered = (name: EngineName): PenError =>
  new PenError('BACKEND', {
    what: `this ${name} runs containers as another user, and pen may not enter them`,
    hint: 'run pen as the user that owns the engine',
  })

/** Mounts for gVisor must exist before it starts, and pen must be able to enter the process that opens its files. */
function refuseWithoutGofer(name: EngineName, runtime: string): void {
  if (runtime !== 'default' && runtime !== GVISOR_RUNTIME)
    throw new PenError('BACKEND', {
      what: `runtime "${runtime}" does not give isolation "gvisor"`,
      hint: 'set only one of the two',
    })
  if (name === 'docker' || !isHostRoot())
    throw new PenError('BACKEND', {
      what:
        name === 'docker'
          ? 'Docker starts a container as soon as it is made, before pen can protect the files that gVisor opens'
          : 'gVisor’s runtime works only with podman that root runs',
      hint: 'run pen as root with podman for isolation "gvisor"; isolation "container" needs neither',
    })
}

function capabilities(
  name: EngineName,
  { rootless, held }: EngineFacts,
  isolation: 'container' | 'gvisor',
): Capabilities {
  return {
    backend: name,
    isolation,
    ...(isolation === 'gvisor' && { weaker: GVISOR_LIMITS }),
    kernelFiles: true,
    networkNamespace: true,
    gateway: true,
    bridge: true,
    seccomp: true,
    // gVisor's kernel has no Landlock, and does not see the mount flags of its gofer.
    get listedExec() {
      return isolation === 'container' && landlockAbi() > 0
    },
    images: true,
    // Without a user namespace an id is the same inside and on the host.
    mapsUser: rootless,
    daemonUser: true,
    ports: true,
    sshAgent: true,
    review: true,
    limits: enforcementOf(new Set(held), { pids: rootless && boundsProcessesByNamespace() }),
  }
}

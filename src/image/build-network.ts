/**
 * The network of a build: a namespace with pen's door in it, as a sandbox has, or with nothing. podman enters one of its own user namespace,
 * held by a process that also ends what a build has started: podman itself, when it is asked to end, leaves that behind. Docker's builder
 * joins that of a container which pen has started.
 */
import type { AuditSink } from '../audit/event.ts'
import type { MadeNamespace, StartOptions } from '../backend/backend.ts'
import type { BuildNetwork } from '../backend/container/build-arguments.ts'
import { startBuildContainer } from '../backend/container/build-container.ts'
import type { Engine } from '../backend/container/engine/engine.ts'
import { connectGateway, type Egress } from '../gateway/egress.ts'
import { openDoor } from '../gateway/netns/door.ts'
import { compileNetwork } from '../policy/network/network.ts'
import type { NetworkPolicy, Policy } from '../policy/policy.ts'
import { holdNamespace } from './hold-namespace.ts'

export interface NetworkRequest {
  readonly engine: Engine
  readonly policy: Policy
  readonly audit: AuditSink
  /** The file that the build sees as its list of hosts. */
  readonly hosts: string
  /** For pen's own Dockerfile: the image that it begins with. Undefined for a project's. */
  readonly base: string | undefined
  readonly sandbox: StartOptions['sandbox']
  readonly cacheDir: string
}

export interface PlannedNetwork {
  readonly network: BuildNetwork
  /** Ends the programs that the build runs now, at once; the engine sees its step fail, and tidies up. False where that is the engine's to do. */
  endPrograms(): boolean
  close(): Promise<void>
}

/** A namespace for a build, and how the engine gets into it. */
interface BuildNamespace extends Pick<PlannedNetwork, 'network' | 'endPrograms'> {
  readonly place: MadeNamespace
  release(): Promise<void>
}

/** A project's Dockerfile has the project's network. pen's own asks for packages, wherever its base gets them from. */
export async function planBuildNetwork(request: NetworkRequest): Promise<PlannedNetwork> {
  const { engine, policy, base } = request
  const { network, acceptGaps } = policy
  if (network.offline) return await openBuildNetwork(request, undefined)
  if (base !== undefined) return await openBuildNetwork(request, await forPackages(engine, base, network))
  if (network.mode === 'bridge' && acceptGaps.includes('open-network'))
    return await openEngineNetwork(request)
  return await openBuildNetwork(request, network.mode === 'gateway' ? network : undefined)
}

/** The engine's own network, which the user has accepted. */
async function openEngineNetwork(request: NetworkRequest): Promise<PlannedNetwork> {
  if (!request.engine.daemon)
    return { network: { kind: 'open' }, endPrograms: () => false, close: async () => undefined }
  const { release, ...planned } = await holdByContainer(request, true)
  return { ...planned, close: release }
}

async function forPackages(engine: Engine, base: string, network: NetworkPolicy): Promise<NetworkPolicy> {
  const { aptMirrors } = await import('./apt-mirrors.ts')
  const allow = [...network.allow, ...(await aptMirrors(engine, base))]
  const input = { mode: 'gateway', offline: false, allow, deny: network.deny } as const
  return { ...network, ...input, index: compileNetwork(input) }
}

async function openBuildNetwork(
  request: NetworkRequest,
  policy: NetworkPolicy | undefined,
): Promise<PlannedNetwork> {
  const held = await (!request.engine.daemon ? holdByProcess(request) : holdByContainer(request, false))
  try {
    const egress = policy === undefined ? undefined : await openEgress(held.place, policy, request.audit)
    return {
      network: held.network,
      endPrograms: held.endPrograms,
      close: async () => {
        await egress?.finish()
        await egress?.recordRefused()
        await egress?.close()
        await held.release()
      },
    }
  } catch (error) {
    await held.release()
    throw error
  }
}

async function holdByProcess({ engine, hosts }: NetworkRequest): Promise<BuildNamespace> {
  const { pid, userNamespace, endPrograms, release } = await holdNamespace(engine)
  return {
    network: { kind: 'namespace', pid, hosts },
    place: { kind: 'of-process', pid, userNamespace },
    endPrograms,
    release,
  }
}

async function holdByContainer(
  { engine, sandbox, cacheDir }: NetworkRequest,
  open: boolean,
): Promise<BuildNamespace> {
  const { id, namespace, release } = await startBuildContainer({ engine, sandbox, cacheDir, open })
  return { network: { kind: 'container', id }, place: namespace, endPrograms: () => false, release }
}

async function openEgress(place: MadeNamespace, policy: NetworkPolicy, audit: AuditSink): Promise<Egress> {
  const ports = policy.allow.map(({ rule }) => rule.port)
  const egress = connectGateway(await openDoor({ ports, location: place }), policy, audit)
  await egress.serve()
  return egress
}

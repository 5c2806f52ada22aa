/**
 * The network of a build: a namespace with pen's door in it, as a sandbox has, or with nothing. It belongs to the engine's user
 * namespace, so that the engine may enter it. The process that holds it also ends what a build has started: podman itself, when
 * it is asked to end, leaves that behind.
 */
import type { AuditSink } from '../audit/event.ts'
import type { BuildNetwork } from '../backend/container/build-arguments.ts'
import type { Engine } from '../backend/container/engine.ts'
import { PenError } from '../base/error.ts'
import { openDoor } from '../gateway/door.ts'
import { compileNetwork } from '../policy/network.ts'
import type { NetworkPolicy, Policy } from '../policy/policy.ts'
import { type HeldNamespace, holdNamespace } from './hold-namespace.ts'
import { connectGateway, type WayOut } from './network.ts'

export interface NetworkRequest {
  readonly engine: Engine
  readonly policy: Policy
  readonly audit: AuditSink
  /** The file that the build sees as its list of hosts. */
  readonly hosts: string
  /** For pen's own Dockerfile: the image that it begins with. Undefined for a project's. */
  readonly base: string | undefined
}

export interface PlannedNetwork {
  readonly network: BuildNetwork
  /** Ends the programs that the build runs now, at once; the engine sees its step fail, and tidies up. False where that is the engine's to do. */
  endPrograms(): boolean
  close(): Promise<void>
}

const GAP = 'build-network'

const fixed = (kind: 'none' | 'open'): PlannedNetwork => ({
  network: { kind },
  endPrograms: () => false,
  close: async () => undefined,
})

/** A project's Dockerfile has the project's network. pen's own asks for packages, wherever its base gets them from. */
export async function planBuildNetwork(request: NetworkRequest): Promise<PlannedNetwork> {
  const { engine, policy, base } = request
  const { network, acceptGaps } = policy
  if (engine.name !== 'podman') return fixed(network.offline ? 'none' : withoutDoor(request))
  if (network.offline) return await openBuildNetwork(request, undefined)
  if (base !== undefined) return await openBuildNetwork(request, await forPackages(engine, base, network))
  if (network.mode === 'bridge' && acceptGaps.includes('open-network')) return fixed('open')
  return await openBuildNetwork(request, network.mode === 'gateway' ? network : undefined)
}

/** An engine whose builds cannot enter a namespace of pen's. */
function withoutDoor({ engine, policy, base }: NetworkRequest): 'none' | 'open' {
  const accepted = policy.acceptGaps.includes(GAP)
  if (base !== undefined) return accepted ? 'open' : 'none'
  if (accepted || policy.network.allow.length === 0) return 'none'
  throw new PenError('GAP', {
    what: `this machine cannot keep all of the policy: ${GAP} (builds of ${engine.name} have no network: the hosts that are allowed are not reached)`,
    hint: `accept by name with --accept-gap ${GAP}, or build with --backend podman`,
  })
}

async function forPackages(engine: Engine, base: string, network: NetworkPolicy): Promise<NetworkPolicy> {
  const { aptMirrors } = await import('../image/apt-mirrors.ts')
  const allow = [...network.allow, ...(await aptMirrors(engine, base))]
  const input = { mode: 'gateway', offline: false, allow, deny: network.deny } as const
  return { ...network, ...input, index: compileNetwork(input) }
}

async function openBuildNetwork(
  { engine, audit, hosts }: NetworkRequest,
  policy: NetworkPolicy | undefined,
): Promise<PlannedNetwork> {
  const held = await holdNamespace(engine)
  try {
    const wayOut = policy === undefined ? undefined : await openWayOut(held, policy, audit)
    return {
      network: { kind: 'namespace', pid: held.pid, hosts },
      endPrograms: held.endPrograms,
      close: async () => {
        await wayOut?.finish()
        await wayOut?.recordRefused()
        await wayOut?.close()
        await held.release()
      },
    }
  } catch (error) {
    await held.release()
    throw error
  }
}

async function openWayOut(held: HeldNamespace, policy: NetworkPolicy, audit: AuditSink): Promise<WayOut> {
  const ports = policy.allow.map(({ rule }) => rule.port)
  const { pid, userNamespace } = held
  const door = await openDoor({ ports, place: { kind: 'of-process', pid, userNamespace } })
  const wayOut = connectGateway(door, policy, audit)
  await wayOut.serve()
  return wayOut
}

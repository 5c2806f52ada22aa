/**
 * The network of a build: a namespace with pen's door in it, as a sandbox has. It belongs to the engine's user namespace, so that
 * the engine may enter it, and lasts as long as the process that holds it, which ends when pen does.
 */
import type { AuditSink } from '../audit/event.ts'
import type { BuildNetwork } from '../backend/container/build-arguments.ts'
import type { Engine } from '../backend/container/engine.ts'
import { PenError } from '../base/error.ts'
import { findTool } from '../base/find-tool.ts'
import { openDoor } from '../gateway/door.ts'
import { compileNetwork } from '../policy/network.ts'
import type { NetworkPolicy, Policy } from '../policy/policy.ts'
import { connectGateway } from './network.ts'

export interface NetworkRequest {
  readonly engine: Engine
  readonly policy: Policy
  readonly audit: AuditSink
  /** The file that the build sees as its list of hosts. */
  readonly hosts: string
  /** For pen's own Dockerfile: the image that it begins with. Undefined for a project's. */
  readonly base: string | undefined
}

interface PlannedNetwork {
  readonly network: BuildNetwork
  close(): Promise<void>
}

const GAP = 'build-network'
const nothing = async (): Promise<void> => undefined

/** A project's Dockerfile has the project's network. pen's own asks for packages, wherever its base gets them from. */
export async function planBuildNetwork(request: NetworkRequest): Promise<PlannedNetwork> {
  const { engine, policy, base } = request
  const { network, acceptGaps } = policy
  if (network.offline) return { network: { kind: 'none' }, close: nothing }
  if (engine.name !== 'podman') return { network: { kind: withoutDoor(request) }, close: nothing }
  if (base !== undefined) return await openBuildNetwork(request, await forPackages(engine, base, network))
  if (network.mode === 'bridge' && acceptGaps.includes('open-network'))
    return { network: { kind: 'open' }, close: nothing }
  if (network.mode !== 'gateway') return { network: { kind: 'none' }, close: nothing }
  return await openBuildNetwork(request, network)
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

/** Says its number, then waits for the end of its input. */
const HOLD = 'echo $$; exec cat'

async function openBuildNetwork(
  { engine, audit, hosts }: NetworkRequest,
  policy: NetworkPolicy,
): Promise<PlannedNetwork> {
  const isOrdinary = process.getuid?.() !== 0
  const unshare = findTool('unshare')
  if (unshare === undefined)
    throw new PenError('MISSING_TOOL', { what: 'unshare is missing', hint: 'install util-linux' })
  const inEngine = isOrdinary ? [engine.program, ...engine.flags, 'unshare'] : []
  const holder = Bun.spawn([...inEngine, unshare, '--net', '/bin/sh', '-c', HOLD], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
    cwd: '/',
    env: { ...engine.env },
  })
  const release = async (): Promise<void> => {
    await holder.stdin.end()
    await holder.exited
  }
  try {
    const pid = await firstNumber(holder.stdout)
    const ports = policy.allow.map(({ rule }) => rule.port)
    const door = await openDoor({ ports, place: { kind: 'of-process', pid, userNamespace: isOrdinary } })
    const wayOut = connectGateway(door, policy, audit)
    await wayOut.serve()
    return {
      network: { kind: 'door', pid, hosts },
      close: async () => {
        await wayOut.finish()
        await wayOut.recordRefused()
        await wayOut.close()
        await release()
      },
    }
  } catch (error) {
    await release()
    throw error
  }
}

async function firstNumber(stream: ReadableStream<Uint8Array>): Promise<number> {
  let text = ''
  for await (const chunk of stream) {
    text += Buffer.from(chunk).toString('latin1')
    const number = /^([1-9][0-9]*)\n/.exec(text)?.[1]
    if (number !== undefined) return Number(number)
    if (text.length > 64) break
  }
  throw new PenError('BACKEND', {
    what: 'no network namespace could be made for the build',
    hint: 'pen doctor tells what this machine can do',
  })
}

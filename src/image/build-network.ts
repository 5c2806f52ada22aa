/**
 * The network namespace of a build. It has the gateway's door in it, as for a sandbox, or it is empty. podman joins a namespace that
 * a helper process holds. That process also kills what a build started, because podman leaves it running.
 * Docker's builder joins the network of a container that pen started.
 */
import type { AuditSink } from '../audit/event.ts'
import type { MadeNamespace, StartOptions } from '../backend/backend.ts'
import type { BuildNetwork } from '../backend/container/build-arguments.ts'
import { startBuildContainer } from '../backend/container/build-container.ts'
import type { Engine } from '../backend/container/engine/engine.ts'
import { PenError } from '../base/error.ts'
import { findTool, missingTool } from '../base/find-tool.ts'
import { startProgram } from '../base/start-program.ts'
import type { UndoStack } from '../base/undo.ts'
import { deb822Sources, oneLineSources } from '../config/registries/apt-sources.ts'
import { mirrorRule } from '../config/registries/mirror.ts'
import { connectGateway } from '../gateway/egress.ts'
import { openDoor } from '../gateway/netns/door.ts'
import { type AllowRule, printRule } from '../policy/network/net-rule.ts'
import { compileNetwork } from '../policy/network/network.ts'
import type { NetworkPolicy, Policy } from '../policy/policy.ts'
import type { Sourced } from '../policy/source.ts'
import { filesOf } from './inspect.ts'

interface NetworkRequest {
  readonly engine: Engine
  readonly policy: Policy
  readonly audit: AuditSink
  /** The file that the build sees as /etc/hosts. */
  readonly hosts: string
  /** The base image of pen's own Dockerfile. Undefined for a project's Dockerfile. */
  readonly base: string | undefined
  readonly sandbox: StartOptions['sandbox']
  readonly cacheDir: string
  /** Takes what ends the network. */
  readonly undo: UndoStack
}

interface PlannedNetwork {
  readonly network: BuildNetwork
  /** Kills the build's programs at once; the engine then sees a failed step and cleans up. False if the engine must do it. */
  endPrograms(): boolean
}

/** A network namespace for a build, and how the engine joins it. */
interface BuildNamespace extends PlannedNetwork {
  readonly place: MadeNamespace
}

/** A project's Dockerfile gets the project's network. pen's own Dockerfile may reach only its package sources. */
export async function planBuildNetwork(request: NetworkRequest): Promise<PlannedNetwork> {
  const { engine, policy, base } = request
  const { network, acceptGaps } = policy
  // The engine's open network, if the user has accepted it.
  const isOpen =
    network.mode === 'bridge' && !network.offline && base === undefined && acceptGaps.includes('open-network')
  if (isOpen && !engine.daemon) return { network: { kind: 'open' }, endPrograms: () => false }
  const reachable = network.offline
    ? undefined
    : base !== undefined
      ? await forPackages(engine, base, network)
      : network.mode === 'gateway'
        ? network
        : undefined
  const held = engine.daemon ? await holdByContainer(request, isOpen) : await holdByProcess(request)
  if (reachable !== undefined) await openGateway(held.place, reachable, request)
  return held
}

async function forPackages(engine: Engine, base: string, network: NetworkPolicy): Promise<NetworkPolicy> {
  const allow = [...network.allow, ...(await aptMirrors(engine, base))]
  const input = { mode: 'gateway', offline: false, allow, deny: network.deny } as const
  return { ...network, ...input, index: compileNetwork(input) }
}

async function openGateway(
  place: MadeNamespace,
  policy: NetworkPolicy,
  { audit, undo }: NetworkRequest,
): Promise<void> {
  const ports = policy.allow.map(({ rule }) => rule.port)
  const egress = connectGateway(await openDoor({ ports, location: place }), policy, audit)
  undo.push('the build’s gateway', async () => {
    await egress.finish()
    await egress.recordRefused()
    await egress.close()
  })
  await egress.serve()
}

/**
 * Prints its pid. For every line that it reads, and when pen is gone, it kills the other processes in its namespace. It uses
 * only shell builtins, so that it is faster than the processes it kills can fork.
 */
const HOLD = `
sweep() {
  for again in 1 2 3; do
    for process in /proc/[0-9]*; do
      [ "$process/ns/net" -ef /proc/self/ns/net ] && [ "$process" != "/proc/$$" ] && kill -9 "\${process#/proc/}"
    done
  done
}
trap '' INT TERM HUP QUIT
echo $$
while read -r line; do sweep; done
sweep
`

/** For podman: a process holds the namespace. Every process in it can be found and killed. */
async function holdByProcess({ engine, hosts, undo }: NetworkRequest): Promise<BuildNamespace> {
  const unshare = findTool('unshare')
  if (unshare === undefined) throw missingTool('unshare', 'install util-linux')
  // Without root, the namespace belongs to a user namespace of the engine.
  const userNamespace = process.getuid?.() !== 0
  const within = userNamespace ? [engine.program, ...engine.flags, 'unshare'] : []
  const holder = startProgram([...within, unshare, '--net', '/bin/sh', '-c', HOLD], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
    cwd: '/',
    env: { ...engine.env },
  })
  undo.push('the build’s namespace', async () => {
    await holder.stdin.end()
    await holder.exited
  })
  const pid = await firstNumber(holder.stdout)
  return {
    network: { kind: 'namespace', pid, hosts },
    place: { kind: 'of-process', pid, userNamespace },
    endPrograms: () => {
      holder.stdin.write('end\n')
      void holder.stdin.flush()
      return true
    },
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
    hint: 'what this machine can do: pen doctor',
  })
}

async function holdByContainer(
  { engine, sandbox, cacheDir, undo }: NetworkRequest,
  open: boolean,
): Promise<BuildNamespace> {
  const { id, namespace, release } = await startBuildContainer({ engine, sandbox, cacheDir, open })
  undo.push('the build’s container', release)
  return { network: { kind: 'container', id }, place: namespace, endPrograms: () => false }
}

/** Not all of `/etc/apt`, because its keys are binary and may be long. */
const SOURCES = ['/etc/apt/sources.list', '/etc/apt/sources.list.d']

/** The package sources of the base image, from its own apt configuration, so that a private mirror works without setup. */
async function aptMirrors(engine: Engine, id: string): Promise<readonly Sourced<AllowRule>[]> {
  const rules = new Map<string, Sourced<AllowRule>>()
  for (const { name, text } of await filesOf(engine, id, SOURCES)) {
    const at = `/etc/apt/${name} of the base image`
    const mirrors = name.endsWith('.sources')
      ? deb822Sources(text, at)
      : name.endsWith('.list')
        ? oneLineSources(text, at)
        : []
    for (const mirror of mirrors) {
      const rule = mirrorRule(mirror)
      if (rule !== undefined)
        rules.set(printRule(rule), { rule, source: { layer: at, place: undefined, note: 'packages' } })
    }
  }
  return [...rules.values()]
}

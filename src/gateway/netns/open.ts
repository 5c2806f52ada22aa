/** Furnishes a location: from here where that is possible, else by a process in it that hands out its descriptors. */
import { errnoOf, PenError } from '../../base/error.ts'
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { close } from '../../base/kernel/descriptor.ts'
import { type Delivery, descriptorPair, receiveDescriptors } from '../../base/kernel/pass-descriptors.ts'
import { ownProgram } from '../../base/own-program.ts'
import { PROXY_PORT } from '../../protocol/guest-paths.ts'
import { DOOR_MODE, RULES_REFUSED } from './door-mode.ts'
import { type Opened, openListeners, type Role } from './listeners.ts'
import {
  type DoorLocation,
  entryFor,
  inNamespaceOf,
  inNewNamespace,
  type NamespaceEntry,
} from './namespace.ts'
import { DNS_PORT } from './rules.ts'

export interface DoorSockets {
  readonly entry: NamespaceEntry
  /** Whether the kernel maps every port to the door's, so that refused ones are seen and recorded too. */
  readonly mapped: boolean
  readonly descriptors: Opened
}

const TIME_LIMIT_MS = 10_000
/** Two listeners for each, one for IPv4 and one for IPv6, and all are handed out in one message. */
const MOST_PORTS = 100

/** With rules if the kernel takes them, else by listening on the ports themselves. */
export async function openDoorSockets(
  location: DoorLocation,
  ports: readonly number[],
): Promise<DoorSockets> {
  const entry = entryFor(location)
  if (location.kind !== 'by-helper' && entry.userNamespace === 'none')
    return { entry, ...openInThisProcess(location, ports) }
  const start = starterOf(location)
  const hidden = [...entry.words, ...ownProgram(), DOOR_MODE]
  const mapped = await openInChild([...hidden, 'mapped'], start)
  if (mapped !== undefined) return { entry, mapped: true, descriptors: mapped }
  const descriptors = await openInChild([...hidden, 'ports', listenable(ports).join(',')], start)
  if (descriptors === undefined) throw new PenError('INTERNAL', { what: 'no rules were asked for' })
  return { entry, mapped: false, descriptors }
}

/** Where pen may step into namespaces (the host's root): this thread goes in, opens the listeners and comes back. */
function openInThisProcess(
  location: Exclude<DoorLocation, { readonly kind: 'by-helper' }>,
  ports: readonly number[],
): Omit<DoorSockets, 'entry'> {
  const within = <T>(work: () => T): T =>
    location.kind === 'new' ? inNewNamespace(work) : inNamespaceOf(location.pid, work)
  try {
    const mapped = within(() => openListeners('mapped'))
    if (mapped !== undefined) return { mapped: true, descriptors: mapped }
    const wanted = listenable(ports)
    return { mapped: false, descriptors: within(() => openListeners(wanted)) }
  } catch (error) {
    if (error instanceof CallFailed) throw failure(-1, error.message)
    throw error
  }
}

function listenable(ports: readonly number[]): readonly number[] {
  const wanted = [...new Set([80, 443, ...ports])].filter(port => port !== DNS_PORT && port !== PROXY_PORT)
  if (wanted.length > MOST_PORTS)
    throw new PenError('GAP', {
      what: `the policy allows ${wanted.length} ports, and on a kernel without nf_tables pen can open ${MOST_PORTS}`,
      hint: 'use a kernel with nf_tables, or allow fewer ports',
    })
  return wanted
}

/** By the hidden mode, wherever `argv` starts it. Undefined when the kernel took no rules. */
export async function openInChild(
  argv: readonly string[],
  start: Starter = startHere,
): Promise<Opened | undefined> {
  const [ours, theirs] = descriptorPair()
  try {
    const { code, said } = await waitFor(argv, theirs, start)
    if (code === RULES_REFUSED) return undefined
    const delivery = code === 0 ? receiveDescriptors(ours) : undefined
    if (delivery === undefined) throw failure(code, said)
    return withRoles(delivery)
  } finally {
    close(ours)
  }
}

type Starter = (
  argv: readonly string[],
  channel: number,
) => Promise<{ readonly code: number; readonly said: string }>

/** Where a program is started that is to be in the location. */
export function starterOf(location: DoorLocation): Starter {
  if (location.kind !== 'by-helper') return startHere
  return async (argv, channel) => {
    const descriptors = [channel, location.network]
    const { code, stderr } = await location.helper.run(argv, { descriptors, timeoutMs: TIME_LIMIT_MS })
    return { code, said: stderr }
  }
}

async function waitFor(argv: readonly string[], channel: number, start: Starter): ReturnType<Starter> {
  // Handed on when this returns; what comes of it is awaited without it.
  const ended = start(argv, channel)
  close(channel)
  return await ended
}

async function startHere(argv: readonly string[], channel: number): ReturnType<Starter> {
  let child: ReturnType<typeof spawn>
  try {
    child = spawn(argv, channel)
  } catch (error) {
    throw failure(-1, `${argv[0]} could not be started: ${errnoOf(error) ?? 'unknown error'}`)
  }
  const said = new Response(child.stderr).text()
  const timer = setTimeout(() => child.kill('SIGKILL'), TIME_LIMIT_MS)
  const code = await child.exited
  clearTimeout(timer)
  return { code, said: code === 0 ? '' : await said }
}

/** No environment: pen's own holds the user's secrets, and this process needs none of it. */
const spawn = (argv: readonly string[], channel: number) =>
  Bun.spawn([...argv], { env: {}, cwd: '/', stdio: ['ignore', 'ignore', 'pipe', channel] })

function withRoles({ text, descriptors }: Delivery): Opened {
  // Written by pen itself, in a process that nothing hostile can reach.
  const roles = JSON.parse(text) as Role[]
  if (roles.length !== descriptors.length)
    throw new PenError('INTERNAL', { what: 'the door was not handed over whole' })
  return descriptors.map((fd, index) => [roles[index] ?? 'network', fd] as const)
}

function failure(code: number, said: string): PenError {
  const blocked = /unshare|nsenter|Operation not permitted/.test(said)
  return new PenError('BACKEND', {
    what: `the sandbox's network namespace could not be made (${said.trim().split('\n').at(-1) || `code ${code}`})`,
    hint: blocked
      ? 'allow user namespaces for unprivileged users on this machine, or run with --offline'
      : 'run with --offline, or report this',
  })
}

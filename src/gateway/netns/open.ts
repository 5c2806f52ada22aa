/** Opens the sockets of a door: in this process with root, else by a child process that passes its descriptors back. */
import { errnoText, PenError } from '../../base/error.ts'
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { close } from '../../base/kernel/descriptor.ts'
import { type Delivery, descriptorPair, receiveDescriptors } from '../../base/kernel/pass-descriptors.ts'
import { ownProgram } from '../../base/own-program.ts'
import { startProgram } from '../../base/start-program.ts'
import { PROXY_PORT } from '../../protocol/guest-paths.ts'
import { DOOR_MODE, RULES_REFUSED } from './door-mode.ts'
import { type Opened, openListeners, openMapped, type Role } from './listeners.ts'
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
  /** Whether the kernel redirects every port to the door, so that refused ports are recorded too. */
  readonly mapped: boolean
  readonly descriptors: Opened
}

const TIME_LIMIT_MS = 10_000
/** Each port needs an IPv4 and an IPv6 listener, and one message passes all of them. */
const MAX_PORTS = 100

/** Uses rules if the kernel accepts them, else a listener for each port. */
export async function openDoorSockets(
  location: DoorLocation,
  ports: readonly number[],
): Promise<DoorSockets> {
  const entry = entryFor(location)
  if (location.kind !== 'by-helper' && entry.userNamespace === 'none')
    return { entry, ...openInThisProcess(location, ports) }
  const start = starterOf(location)
  const hidden = [...entry.prefix, ...ownProgram(), DOOR_MODE]
  const mapped = await tryInChild([...hidden, 'mapped'], start)
  if (mapped !== undefined) return { entry, mapped: true, descriptors: mapped }
  const descriptors = await openInChild([...hidden, 'ports', listenable(ports).join(',')], start)
  return { entry, mapped: false, descriptors }
}

/** With root: this thread enters the namespace, opens the listeners and returns. */
function openInThisProcess(
  location: Exclude<DoorLocation, { readonly kind: 'by-helper' }>,
  ports: readonly number[],
): Omit<DoorSockets, 'entry'> {
  const within = <T>(work: () => T): T =>
    location.kind === 'new' ? inNewNamespace(work) : inNamespaceOf(location.pid, work)
  try {
    const mapped = within(openMapped)
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
  if (wanted.length > MAX_PORTS)
    throw new PenError('GAP', {
      what: `the policy allows ${wanted.length} ports, and without nf_tables in the kernel pen can open ${MAX_PORTS}`,
      hint: 'load nf_tables (modprobe nf_tables), or allow fewer ports',
    })
  return wanted
}

/** `argv` starts the door mode in the namespace. */
export async function openInChild(argv: readonly string[], start: Starter): Promise<Opened> {
  const opened = await tryInChild(argv, start)
  if (opened !== undefined) return opened
  throw new PenError('INTERNAL', { what: 'the door mode reported rules it was not asked for' })
}

/** The same with rules. Undefined when the kernel refuses them. */
async function tryInChild(argv: readonly string[], start: Starter): Promise<Opened | undefined> {
  const [ours, theirs] = descriptorPair()
  try {
    const ending = start(argv, theirs)
    // `start` has passed the channel on when it returns.
    close(theirs)
    const { code, stderr } = await ending
    if (code === RULES_REFUSED) return undefined
    const delivery = code === 0 ? receiveDescriptors(ours) : undefined
    if (delivery === undefined) throw failure(code, stderr)
    return withRoles(delivery)
  } finally {
    close(ours)
  }
}

export type Starter = (
  argv: readonly string[],
  channel: number,
) => Promise<{ readonly code: number; readonly stderr: string }>

/** How to start a process in the namespace. */
export function starterOf(location: DoorLocation): Starter {
  if (location.kind !== 'by-helper') return startHere
  return async (argv, channel) => {
    const descriptors = [channel, location.network]
    return await location.helper.run(argv, { descriptors, timeoutMs: TIME_LIMIT_MS })
  }
}

export async function startHere(argv: readonly string[], channel: number): ReturnType<Starter> {
  let child: ReturnType<typeof spawn>
  try {
    child = spawn(argv, channel)
  } catch (error) {
    throw failure(-1, `cannot start ${argv[0]}: ${errnoText(error)}`)
  }
  const stderr = new Response(child.stderr).text()
  const timer = setTimeout(() => child.kill('SIGKILL'), TIME_LIMIT_MS)
  const code = await child.exited
  clearTimeout(timer)
  return { code, stderr: code === 0 ? '' : await stderr }
}

/** The environment is empty, because pen's own may hold secrets and the child needs none of it. */
const spawn = (argv: readonly string[], channel: number) =>
  startProgram(argv, { env: {}, cwd: '/', stdio: ['ignore', 'ignore', 'pipe', channel] })

function withRoles({ text, descriptors }: Delivery): Opened {
  // Trusted: pen wrote it in a process that nothing hostile can reach.
  const roles = JSON.parse(text) as Role[]
  if (roles.length !== descriptors.length)
    throw new PenError('INTERNAL', { what: 'the door mode passed an incomplete set of descriptors' })
  return descriptors.map((fd, index) => [roles[index] ?? 'network', fd] as const)
}

function failure(code: number, stderr: string): PenError {
  const blocked = /unshare|nsenter|Operation not permitted/.test(stderr)
  return new PenError('BACKEND', {
    what: `could not create the sandbox's network namespace (${stderr.trim().split('\n').at(-1) || `code ${code}`})`,
    hint: blocked
      ? 'allow unprivileged user namespaces on this machine, or run with --offline'
      : 'run with --offline, and report this error',
  })
}

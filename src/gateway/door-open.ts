/** Furnishes a place: from here where that is possible, else by a process in it that hands out its descriptors. */

import { type Delivery, descriptorPair, receiveDescriptors } from '../base/descriptors.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { CallFailed, libc } from '../base/libc.ts'
import { ownProgram } from '../base/own-program.ts'
import { PROXY_PORT } from '../wire/places.ts'
import { furnishMapped, furnishPorts, type StepIn } from './door-here.ts'
import { DOOR_MODE, RULES_REFUSED } from './door-inside.ts'
import type { Role } from './door-listeners.ts'
import { type Entrance, entranceOf, inNewNetwork, type Place, startWithinThatOf } from './door-namespace.ts'
import { DNS_PORT, RULES } from './door-rules.ts'

export interface Furnished {
  readonly entrance: Entrance
  /** Whether the kernel maps every port to the door's, so that refused ones are seen and recorded too. */
  readonly mapped: boolean
  readonly descriptors: readonly (readonly [Role, number])[]
}

const TIME_LIMIT_MS = 10_000
/** Two listeners for each, one for IPv4 and one for IPv6, and all are handed out in one message. */
const MOST_PORTS = 100

/**
 * The rules are loaded beside the start of pen's own hidden mode, which takes longer and hears over 5 what is said to 4.
 * `exec` keeps the process id: the process that pen started is the one that ends. Its children are no way to tell
 * how the loading went, because a shell may have collected them before.
 */
const BESIDE = '{ "$1" "$2" && echo loaded >&4; } & shift 2; exec 4>&-; exec "$@"'

/** With rules if nft and the kernel can do them, else by listening on the ports themselves. */
export async function furnish(
  place: Place,
  ports: readonly number[],
  nft: string | undefined,
): Promise<Furnished> {
  const entrance = entranceOf(place)
  if (place.kind !== 'by-hand' && entrance.userNamespace === 'none')
    return await furnishHere(place, entrance, ports, nft)
  const start = starterOf(place)
  if (nft !== undefined) {
    const argv = ['/bin/sh', '-c', BESIDE, 'pen-door', nft, RULES, ...ownProgram(), DOOR_MODE, 'mapped']
    const descriptors = await openElsewhere([...entrance.words, ...argv], start)
    if (descriptors !== 'rules refused') return { entrance, mapped: true, descriptors }
  }
  const argv = [...ownProgram(), DOOR_MODE, 'ports', listenable(ports).join(',')]
  const descriptors = await openElsewhere([...entrance.words, ...argv], start)
  if (descriptors === 'rules refused') throw new PenError('INTERNAL', { what: 'no rules were asked for' })
  return { entrance, mapped: false, descriptors }
}

async function furnishHere(
  place: Exclude<Place, { readonly kind: 'by-hand' }>,
  entrance: Entrance,
  ports: readonly number[],
  nft: string | undefined,
): Promise<Furnished> {
  const stepIn: StepIn = place.kind === 'new' ? inNewNetwork : work => startWithinThatOf(place.pid, work)
  try {
    const descriptors = nft === undefined ? undefined : await furnishMapped(stepIn, nft)
    if (descriptors !== undefined) return { entrance, mapped: true, descriptors }
    return { entrance, mapped: false, descriptors: furnishPorts(stepIn, listenable(ports)) }
  } catch (error) {
    if (error instanceof CallFailed) throw failure(-1, error.message)
    throw error
  }
}

function listenable(ports: readonly number[]): readonly number[] {
  const wanted = [...new Set([80, 443, ...ports])].filter(port => port !== DNS_PORT && port !== PROXY_PORT)
  if (wanted.length > MOST_PORTS)
    throw new PenError('GAP', {
      what: `the policy allows ${wanted.length} ports, and without nftables pen can open ${MOST_PORTS}`,
      hint: 'install nftables, or allow fewer ports',
    })
  return wanted
}

/** By the hidden mode, wherever `argv` starts it. */
export async function openElsewhere(
  argv: readonly string[],
  start: Starter = startHere,
): Promise<Furnished['descriptors'] | 'rules refused'> {
  const [ours, theirs] = descriptorPair()
  try {
    const { code, said } = await waitFor(argv, theirs, start)
    if (code === RULES_REFUSED) return 'rules refused'
    const delivery = code === 0 ? receiveDescriptors(ours) : undefined
    if (delivery === undefined) throw failure(code, said)
    return withRoles(delivery)
  } finally {
    libc().close(ours)
  }
}

type Starter = (
  argv: readonly string[],
  channels: readonly number[],
) => Promise<{ readonly code: number; readonly said: string }>

/** Where a program is started that is to be in the place. */
export function starterOf(place: Place): Starter {
  if (place.kind !== 'by-hand') return startHere
  return async (argv, channels) => {
    const descriptors = [...channels, place.network]
    const { code, stderr } = await place.hand.run(argv, { descriptors, timeoutMs: TIME_LIMIT_MS })
    return { code, said: stderr }
  }
}

async function waitFor(argv: readonly string[], channel: number, start: Starter): ReturnType<Starter> {
  const rules = descriptorPair()
  const channels = [channel, ...rules]
  // Handed on when this returns; what comes of it is awaited without them.
  const ended = start(argv, channels)
  for (const fd of channels) libc().close(fd)
  return await ended
}

async function startHere(argv: readonly string[], channels: readonly number[]): ReturnType<Starter> {
  let child: ReturnType<typeof spawn>
  try {
    child = spawn(argv, channels)
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
const spawn = (argv: readonly string[], channels: readonly number[]) =>
  Bun.spawn([...argv], { env: {}, cwd: '/', stdio: ['ignore', 'ignore', 'pipe', ...channels] })

function withRoles({ text, descriptors }: Delivery): Furnished['descriptors'] {
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

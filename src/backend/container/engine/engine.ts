/**
 * A container engine of the host, as a program that is asked: by argv, never by a shell, with a bound on time and output and
 * with an environment of its own. What the engine answers is trusted; what it repeats of an image or a name is not.
 */
import { accessSync, constants } from 'node:fs'
import { type ErrorCode, PenError } from '../../../base/error.ts'
import { findTool } from '../../../base/find-tool.ts'
import { missingTool } from '../../../base/missing-tool.ts'
import { printable } from '../../../base/printable.ts'
import { type Captured, capture } from '../../../base/spawn.ts'

export type EngineName = 'podman' | 'docker'

export interface Engine {
  readonly name: EngineName
  /** A daemon does the work, and the program only asks it. Otherwise the program works itself. */
  readonly daemon: boolean
  readonly program: string
  /** Before the verb. */
  readonly flags: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Where an engine keeps its storage, and finds its daemon and the user's registries: of the user's environment this alone is handed on. */
const HANDED_ON: Readonly<Record<EngineName, readonly string[]>> = {
  podman: [
    'CONTAINERS_CONF',
    'CONTAINERS_REGISTRIES_CONF',
    'CONTAINERS_STORAGE_CONF',
    'DBUS_SESSION_BUS_ADDRESS',
    'REGISTRY_AUTH_FILE',
    'XDG_CONFIG_HOME',
    'XDG_DATA_HOME',
    'XDG_RUNTIME_DIR',
  ],
  docker: ['DOCKER_CONFIG'],
}

const INSTALL: Readonly<Record<EngineName, string>> = {
  podman: 'apt-get install podman, dnf install podman, pacman -S podman or apk add podman',
  docker: 'install Docker Engine (apt-get install docker.io, dnf install moby-engine) and start its daemon',
}

/** The engine's own name of a container. */
export const CONTAINER_ID = /^[0-9a-f]{64}$/

type Environment = Readonly<Record<string, string | undefined>>

export function findEngine(name: EngineName, env: Environment = process.env): Engine | undefined {
  const program = findTool(name)
  if (program === undefined) return undefined
  const handed = HANDED_ON[name].flatMap(key => (env[key] === undefined ? [] : [[key, env[key]] as const]))
  return {
    name,
    daemon: name === 'docker',
    program,
    flags: name === 'docker' ? ['--host', daemonOf(env)] : [],
    env: { PATH: TRUSTED_PATH, HOME: env['HOME'] ?? '/', LC_ALL: 'C', ...Object.fromEntries(handed) },
  }
}

export function requireEngine(name: EngineName): Engine {
  const engine = findEngine(name)
  if (engine !== undefined) return engine
  throw missingTool(name, INSTALL[name])
}

/** podman starts others by name: its monitor, its runtime, newuidmap. */
const TRUSTED_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const DOCKER_SOCKET = 'unix:///var/run/docker.sock'

/** Only a daemon of this machine: pen enters the namespaces that it makes. */
function daemonOf(env: Environment): string {
  const host = env['DOCKER_HOST'] ?? DOCKER_SOCKET
  if (/^unix:\/\/\/[^\0]+$/.test(host)) return host
  throw new PenError('BACKEND', {
    what: `DOCKER_HOST is "${printable(host)}", and pen works with a Docker daemon of this machine alone`,
    hint: 'unset DOCKER_HOST, or let it name a socket: unix:///var/run/docker.sock',
  })
}

/** Whether its daemon would listen to this user. */
export function mayAsk({ flags }: Engine): boolean {
  const socket = flags.find(flag => flag.startsWith('unix://'))?.slice('unix://'.length)
  try {
    if (socket !== undefined) accessSync(socket, constants.W_OK)
    return socket !== undefined
  } catch {
    return false
  }
}

export interface AskOptions {
  readonly timeoutMs?: number
  readonly input?: string
  readonly maxOutput?: number
  /** Beyond the engine's own. */
  readonly env?: Readonly<Record<string, string>>
}

/** Far longer than an engine needs; one that hangs must not hang pen. */
export const TIME_LIMIT_MS = 60_000

/** What came of it, whatever it was. */
export async function tryEngine(
  engine: Engine,
  argv: readonly string[],
  options: AskOptions = {},
): Promise<Captured> {
  return await capture([engine.program, ...engine.flags, ...argv], {
    env: { ...engine.env, ...options.env },
    cwd: '/',
    timeoutMs: options.timeoutMs ?? TIME_LIMIT_MS,
    maxOutput: options.maxOutput ?? 4 * 2 ** 20,
    ...(options.input !== undefined && { input: options.input }),
  })
}

/** What it said, or an error with its own last words. */
export async function askEngine(
  engine: Engine,
  argv: readonly string[],
  options: AskOptions = {},
): Promise<string> {
  const answer = await tryEngine(engine, argv, options)
  if (answer.code === 0) return answer.stdout
  throw engineError(engine, answer)
}

export function engineError(engine: Engine, answer: Captured, code: ErrorCode = 'BACKEND'): PenError {
  const reason = reasonOf(answer)
  return new PenError(code, {
    what: `${engine.name} failed: ${printable(reason)}`,
    hint: cureOf(engine.name, reason),
  })
}

/** Engines put the reason into the last line, after warnings; Docker's client has one more, on how to call it. */
export function reasonOf({ stderr, ended, code }: Pick<Captured, 'stderr' | 'ended' | 'code'>): string {
  if (ended === 'timeout') return 'it did not answer in time'
  const lines = stderr.split('\n').filter(line => line.trim() !== '' && !/^(See|Run) ['"]docker/.test(line))
  const last = lines.at(-1)?.trim() ?? ''
  const said = last.replace(/^((Error|docker|Error response from daemon): )+/, '')
  return said || (code === null ? 'it was killed' : `it ended with ${code}`)
}

const CURES: readonly (readonly [RegExp, string])[] = [
  [
    /permission denied.*docker\.sock|docker daemon socket/i,
    'use rootless podman, or join the group of Docker’s users, which is as good as root',
  ],
  [/cannot connect to the docker daemon|is the docker daemon running/i, 'start the Docker daemon'],
  [/newuidmap|subuid|insufficient UIDs/i, 'give your user a range in /etc/subuid and /etc/subgid'],
  [/no such image|image not known/i, 'the image is gone: pen build'],
  [/no space left/i, 'free some space: pen gc, then the engine’s own prune'],
  [/runtime|crun|runc/i, 'name another OCI runtime with "runtime" in the configuration'],
]

const cureOf = (name: EngineName, reason: string): string =>
  CURES.find(([symptom]) => symptom.test(reason))?.[1] ??
  `\`${name} info\` and \`pen doctor\` tell more about this machine`

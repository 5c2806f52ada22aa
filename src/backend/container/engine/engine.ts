/**
 * A container engine of the host. pen starts it by argv, never by a shell, with bounds on time and output and its own
 * environment. The engine's answers are trusted. Text of an image or a name in them is not.
 */
import { accessSync, constants } from 'node:fs'
import { type ErrorCode, PenError } from '../../../base/error.ts'
import { findTool, missingTool } from '../../../base/find-tool.ts'
import { printable } from '../../../base/printable.ts'
import { type Captured, capture } from '../../../base/spawn.ts'

/** The engine without root comes first: its containers have no power over the host. */
export const ENGINE_NAMES = ['podman', 'docker'] as const

export type EngineName = (typeof ENGINE_NAMES)[number]

export interface Engine {
  readonly name: EngineName
  /** True when a daemon does the work and the program is only its client. */
  readonly daemon: boolean
  readonly program: string
  /** Flags before the verb. */
  readonly flags: readonly string[]
  /** Stands before the name of a local image. podman would search registries for a shorter name. */
  readonly localPrefix: string
  /** Where the certificates of registries are. */
  readonly certificates: string
  readonly env: Readonly<Record<string, string>>
}

/** The variables of the user that an engine gets. They locate its storage, its daemon and the user's registries. */
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

/** The id of a container. */
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
    localPrefix: name === 'podman' ? 'localhost/' : '',
    certificates: name === 'podman' ? '/etc/containers/certs.d' : '/etc/docker/certs.d',
    env: { PATH: TRUSTED_PATH, HOME: env['HOME'] ?? '/', LC_ALL: 'C', ...Object.fromEntries(handed) },
  }
}

export function requireEngine(name: EngineName): Engine {
  const engine = findEngine(name)
  if (engine !== undefined) return engine
  throw missingTool(name, INSTALL[name])
}

/** podman starts its monitor, its runtime and newuidmap by name. */
const TRUSTED_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const DOCKER_SOCKET = 'unix:///var/run/docker.sock'

/** Accepts only a daemon of this machine: pen enters the namespaces that it makes. */
function daemonOf(env: Environment): string {
  const host = env['DOCKER_HOST'] ?? DOCKER_SOCKET
  if (/^unix:\/\/\/[^\0]+$/.test(host)) return host
  throw new PenError('BACKEND', {
    what: `DOCKER_HOST is "${printable(host)}", and pen works only with a Docker daemon of this machine`,
    hint: 'unset DOCKER_HOST, or set it to a socket: unix:///var/run/docker.sock',
  })
}

/** True when this user may connect to the daemon. */
export function mayUseDaemon({ flags }: Engine): boolean {
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
  /** Added to the engine's own variables. */
  readonly env?: Readonly<Record<string, string>>
}

/** Far longer than an engine needs. An engine that hangs must not block pen. */
export const TIME_LIMIT_MS = 60_000

/** Returns every result, also a failure. */
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

/** Returns the output, or throws an error with the engine's last message. */
export async function runEngine(
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

/** Engines print the reason in the last line, after warnings. Docker's client adds one more line, about usage. */
export function reasonOf({ stderr, ended, code }: Pick<Captured, 'stderr' | 'ended' | 'code'>): string {
  if (ended === 'timeout') return 'it did not answer in time'
  const lines = stderr.split('\n').filter(line => line.trim() !== '' && !/^(See|Run) ['"]docker/.test(line))
  const last = lines.at(-1)?.trim() ?? ''
  const reason = last.replace(/^((Error|docker|Error response from daemon): )+/, '')
  return reason || (code === null ? 'it was killed' : `it ended with ${code}`)
}

const CURES: readonly (readonly [RegExp, string])[] = [
  [
    /permission denied.*docker\.sock|docker daemon socket/i,
    'use rootless podman, or join the docker group, which is equal to root',
  ],
  [/cannot connect to the docker daemon|is the docker daemon running/i, 'start the Docker daemon'],
  [/newuidmap|subuid|insufficient UIDs/i, 'give your user a range in /etc/subuid and /etc/subgid'],
  [/no such image|image not known/i, 'the image is gone: pen build'],
  [/no space left/i, 'free disk space: pen gc, then the engine’s own prune'],
  [/runtime|crun|runc/i, 'set another OCI runtime as "runtime" in the configuration'],
]

const cureOf = (name: EngineName, reason: string): string =>
  CURES.find(([symptom]) => symptom.test(reason))?.[1] ??
  `run \`${name} info\` and \`pen doctor\` for details`

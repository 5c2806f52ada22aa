/** The arguments with which an engine runs one container, confined as far as the engine can. Pure. */
import { PenError } from '../../base/error.ts'
import type { EngineName } from './engine/engine.ts'

export interface Bind {
  readonly from: string
  readonly at: string
  readonly mode: 'ro' | 'rw'
}

export interface Scratch {
  readonly at: string
  readonly size: number
  readonly mode: number
}

export interface ContainerOrder {
  readonly engine: EngineName
  /** The engine belongs to an ordinary user. podman then maps ids. */
  readonly rootless: boolean
  readonly runtime: string | undefined
  /** Flags for the runtime, without their dashes. Only podman can pass them on. */
  readonly runtimeFlags: readonly string[]
  /** Capabilities of the container's only program. */
  readonly capabilities: readonly string[]
  /** True for the root helper, which acts on the host. A sandbox's confinement would stop its work. */
  readonly helper: boolean
  /** `run` starts the container at once. `create` makes it, to be started later. */
  readonly verb: 'run' | 'create'
  readonly name: string
  readonly image: string
  readonly hostname: string
  readonly labels: Readonly<Record<string, string>>
  /** The user that commands run as. */
  readonly user: { readonly uid: number; readonly gid: number }
  readonly network: 'none' | 'bridge'
  /** Processes that join this network use the door's name server. */
  readonly doorNames?: boolean
  /** The limits that the engine can enforce on this machine. */
  readonly limits: { readonly memory?: number; readonly pids?: number; readonly cpus?: number }
  readonly ulimits: { readonly nofile: number; readonly nproc: number; readonly core: number }
  readonly scratch: readonly Scratch[]
  readonly binds: readonly Bind[]
  readonly env: Readonly<Record<string, string>>
  /** The engine writes the container's id here, also when the container did not start. */
  readonly idFile: string
  /** podman writes the pid of the first process here. */
  readonly pidFile: string
  /** SELinux is enforcing. The host's files do not have the labels of containers. */
  readonly selinux: boolean
  readonly argv: readonly [string, ...string[]]
}

/**
 * What the exec daemon needs to start commands as another user. It drops all but the first four before it starts one.
 */
export const DAEMON_CAPABILITIES = ['CHOWN', 'KILL', 'SETGID', 'SETUID', 'SETPCAP'] as const

/**
 * What the root helper needs: to enter and mount in a sandbox's namespaces, to pass the user's directories, and to kill
 * a sandbox.
 */
export const ROOT_HELPER_CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'KILL',
  'NET_ADMIN',
  'SYS_ADMIN',
  'SYS_CHROOT',
] as const

/** The door's name server, without any of the host's resolver settings. */
export const DOOR_NAMES = ['--dns=127.0.0.1', '--dns-search=.', '--dns-option=ndots:1'] as const

export function runArguments(order: ContainerOrder): string[] {
  const [program, ...rest] = order.argv
  const podman = order.engine === 'podman'
  return [
    ...runtimeArguments(order),
    ...(order.verb === 'run' ? ['run', '--detach'] : ['create']),
    '--rm',
    '--pull=never',
    `--name=${order.name}`,
    `--cidfile=${order.idFile}`,
    ...pairs('--label', order.labels),
    `--hostname=${order.hostname}`,
    // The engine's default seccomp profile stays. The exec daemon adds pen's filter.
    '--read-only',
    '--cap-drop=ALL',
    ...order.capabilities.map(name => `--cap-add=${name}`),
    '--security-opt=no-new-privileges',
    ...(order.selinux ? ['--security-opt=label=disable'] : []),
    ...networkArguments(order),
    ...(order.doorNames === true ? DOOR_NAMES : []),
    '--ipc=none',
    ...(order.helper ? HELPER_ARGUMENTS : ['--cgroupns=private']),
    ...limitArguments(order),
    '--user=0:0',
    '--workdir=/',
    '--log-driver=none',
    ...pairs('--env', order.env),
    ...order.scratch.flatMap(scratch => ['--tmpfs', scratchOption(scratch, podman)]),
    ...order.binds.flatMap(bind => ['--mount', bindOption(bind)]),
    ...(podman ? podmanArguments(order) : dockerArguments(order)),
    `--entrypoint=${program}`,
    order.image,
    ...rest,
  ]
}

/** The host's PID and cgroup namespaces, without a security profile: an engine's profiles refuse mounts. */
const HELPER_ARGUMENTS = [
  '--pid=host',
  '--cgroupns=host',
  '--security-opt=apparmor=unconfined',
  '--security-opt=seccomp=unconfined',
]

/** Arguments before the verb. podman does not keep a runtime's flags from one command to the next. */
export const runtimeArguments = ({
  engine,
  runtime,
  runtimeFlags,
}: Pick<ContainerOrder, 'engine' | 'runtime' | 'runtimeFlags'>): string[] =>
  engine === 'docker'
    ? []
    : [
        ...(runtime === undefined ? [] : ['--runtime', runtime]),
        ...runtimeFlags.flatMap(flag => ['--runtime-flag', flag]),
      ]

function podmanArguments({ rootless, user, pidFile, verb }: ContainerOrder): string[] {
  return [
    ...(rootless ? [`--userns=keep-id:uid=${user.uid},gid=${user.gid}`] : []),
    `--pidfile=${pidFile}`,
    // Turns off what podman adds by default.
    '--read-only-tmpfs=false',
    '--no-hosts',
    // `create` lacks this flag. Every image has root, and the plan's passwd file is mounted over the image's.
    ...(verb === 'run' ? ['--passwd=false'] : []),
    '--http-proxy=false',
    '--no-healthcheck',
    '--sdnotify=ignore',
    '--image-volume=ignore',
  ]
}

function dockerArguments({ runtime }: ContainerOrder): string[] {
  return [...(runtime === undefined ? [] : [`--runtime=${runtime}`]), '--no-healthcheck']
}

/** Rootless podman has no bridge. Its default network is used instead. */
function networkArguments({ network, rootless, engine }: ContainerOrder): string[] {
  if (network === 'none') return ['--network=none']
  return rootless && engine === 'podman' ? [] : ['--network=bridge']
}

function limitArguments({ limits: { memory, pids, cpus }, ulimits }: ContainerOrder): string[] {
  return [
    ...(memory === undefined ? [] : [`--memory=${memory}`, `--memory-swap=${memory}`]),
    ...(pids === undefined ? [] : [`--pids-limit=${pids}`]),
    ...(cpus === undefined ? [] : [`--cpus=${cpus}`]),
    ...Object.entries(ulimits).map(([name, value]) => `--ulimit=${name}=${value}:${value}`),
  ]
}

/** By default podman copies the image's files into the tmpfs. */
function scratchOption({ at, size, mode }: Scratch, podman: boolean): string {
  const options = ['rw', 'exec', 'nosuid', 'nodev', `size=${size}`, `mode=${mode.toString(8)}`]
  return `${at}:${[...options, ...(podman ? ['notmpcopyup'] : [])].join(',')}`
}

const bindOption = ({ from, at, mode }: Bind): string =>
  mountField(['type=bind', ['source', from], ['target', at], ...(mode === 'ro' ? ['readonly'] : [])])

const pairs = (flag: string, values: Readonly<Record<string, string>>): string[] =>
  Object.entries(values).map(([name, value]) => `${flag}=${name}=${value}`)

/**
 * One `--mount` value of an engine. It is a line of CSV, so a path may contain any character, quoted by CSV's rules.
 * Engines drop a carriage return, which would name another file, so it is refused.
 */
export function mountField(fields: readonly (readonly [string, string] | string)[]): string {
  return fields
    .map(field => (typeof field === 'string' ? field : quoted(`${field[0]}=${field[1]}`)))
    .join(',')
}

function quoted(text: string): string {
  if (/[\r\0]/.test(text))
    throw new PenError('PATH_REFUSED', {
      what: 'container engines cannot mount a path with a carriage return',
      at: text,
      hint: 'rename it, or use the process backend',
    })
  return /[",\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

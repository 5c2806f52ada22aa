/** What an engine is told to run: one container, confined as far as the engine can. Pure. */
import type { EngineName } from './engine/engine.ts'
import { mountField } from './mount-field.ts'

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
  /** Of an ordinary user: podman then maps ids. */
  readonly rootless: boolean
  readonly runtime: string | undefined
  /** For the runtime, each without its dashes; podman alone can hand them on. */
  readonly runtimeFlags: readonly string[]
  /** For its only program. */
  readonly capabilities: readonly string[]
  /** the root helper, which acts on the host for a supervisor without root: what confines a sandbox would be in its way. */
  readonly helper: boolean
  /** Whether it is started at once, or made and started later. */
  readonly verb: 'run' | 'create'
  readonly name: string
  readonly image: string
  readonly hostname: string
  readonly labels: Readonly<Record<string, string>>
  /** The user that commands run as. */
  readonly user: { readonly uid: number; readonly gid: number }
  readonly network: 'none' | 'bridge'
  /** Names are asked of the door, by whatever else joins this network. */
  readonly doorNames?: boolean
  /** Those that the engine can hold on this machine. */
  readonly limits: { readonly memory?: number; readonly pids?: number; readonly cpus?: number }
  readonly ulimits: { readonly nofile: number; readonly nproc: number; readonly core: number }
  readonly scratch: readonly Scratch[]
  readonly binds: readonly Bind[]
  readonly env: Readonly<Record<string, string>>
  /** Where the engine writes which container it made, also when that did not start. */
  readonly idFile: string
  /** Where podman writes the number of the first process. */
  readonly pidFile: string
  /** Labels of the host's files are not those of containers. */
  readonly selinux: boolean
  readonly argv: readonly [string, ...string[]]
}

/** What the exec daemon needs to start commands as somebody else, and gives up but for the first four before it starts any. */
export const DAEMON_CAPABILITIES = ['CHOWN', 'KILL', 'SETGID', 'SETUID', 'SETPCAP'] as const

/**
 * What the root helper needs to enter a sandbox's namespaces and to furnish them, to pass over the modes of the user's directories on the
 * way, and to end a sandbox.
 */
export const ROOT_HELPER_CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'KILL',
  'NET_ADMIN',
  'SYS_ADMIN',
  'SYS_CHROOT',
] as const

/** The door's name server, and nothing of the host's own settings. */
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
    // The engine's own default profile of system calls stays; the exec daemon puts pen's filter on top.
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

/** The numbers and cgroups of the host's processes, and no profile: those of an engine refuse to mount. */
const HELPER_ARGUMENTS = [
  '--pid=host',
  '--cgroupns=host',
  '--security-opt=apparmor=unconfined',
  '--security-opt=seccomp=unconfined',
]

/** What stands before the verb: podman forgets the flags of a runtime from one command to the next. */
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
    // Everything that podman would add by itself.
    '--read-only-tmpfs=false',
    '--no-hosts',
    // `create` has no such flag; root is in every image, and the plan's own file is mounted over the image's.
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

/** An ordinary user's podman has no bridge of its own; what it has instead is its default. */
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

/** podman would copy what the image has there. */
function scratchOption({ at, size, mode }: Scratch, podman: boolean): string {
  const options = ['rw', 'exec', 'nosuid', 'nodev', `size=${size}`, `mode=${mode.toString(8)}`]
  return `${at}:${[...options, ...(podman ? ['notmpcopyup'] : [])].join(',')}`
}

const bindOption = ({ from, at, mode }: Bind): string =>
  mountField(['type=bind', ['source', from], ['target', at], ...(mode === 'ro' ? ['readonly'] : [])])

const pairs = (flag: string, values: Readonly<Record<string, string>>): string[] =>
  Object.entries(values).map(([name, value]) => `${flag}=${name}=${value}`)

/**
 * The interface of every backend: it finds out what this machine can do, and turns a plan into a running sandbox. Code
 * outside this directory asks for capabilities, and never compares a backend's name.
 */
import type { AuditSink } from '../audit/event.ts'
import type { Found } from '../base/beneath/open-beneath.ts'
import type { DescriptorRan, DescriptorRun } from '../base/kernel/run-with-descriptors.ts'
import type { StreamSocket } from '../gateway/stream/stream-socket.ts'
import type { InitHandle } from '../limits/init-handle.ts'
import type { LimitSupport } from '../limits/probe.ts'
import type { Capabilities } from '../plan/gaps.ts'
import type { Plan } from '../plan/plan.ts'
import type { FileGrant } from '../policy/files/decide-grant.ts'
import type { PathWorld } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { BackendName } from '../policy/settings.ts'
import type { ExecOrder } from '../protocol/exec-order.ts'
import type { Engine } from './container/engine/engine.ts'
import type { HeadStart } from './container/head-start.ts'

/** How a sandbox ended: its command exited, or pen killed it. */
export type Ending = { readonly kind: 'exit'; readonly code: number } | { readonly kind: 'killed' }

/** What a sandbox sees at a path. */
export type Seen = Omit<Found, 'fd'>

/**
 * A place to hold in a running sandbox. `dev` and `ino` name the file that the host has there. A mount on any other
 * file is refused.
 */
export interface HoldRequest {
  /** `cover` hides the place. `protect` makes it read-only. */
  readonly how: 'cover' | 'protect'
  readonly path: string
  readonly dev: bigint | 'any'
  readonly ino: bigint | 'any'
}

/** `changed`: the path had another file, or none, at the time of the mount. */
export type HoldResult = 'held' | 'changed' | { readonly failed: string }

/** Mounts in a sandbox that already runs, for places that appear or are replaced. */
export interface LiveMounts {
  /** False until the sandbox's mounts are complete, and after the sandbox has ended. */
  ready(): boolean
  /** Follows no link. Undefined when the path does not exist, or when a parent is a link. Throws `Unseen` when a parent is locked. */
  look(path: string): Seen | undefined
  hold(requests: readonly HoldRequest[]): Promise<readonly HoldResult[]>
  /** Call it when every process of the sandbox has ended. */
  close(): void
}

/** Acts as root for a supervisor that is not root, in namespaces that belong to root. */
export interface RootHelper {
  /** Starts a program of the host as root. The descriptors get the numbers from 3 on. */
  run(
    argv: readonly string[],
    options: Omit<DescriptorRun, 'input'> & { readonly input?: string },
  ): Promise<DescriptorRan>
  /** The connections that the rules of a network namespace refused. `socket` is a socket of that namespace. */
  listRefused(socket: number): Promise<unknown>
}

/**
 * A network namespace that a backend made. pen enters it through one of its processes, or the root helper enters it by
 * descriptor.
 */
export type MadeNamespace =
  | { readonly kind: 'of-process'; readonly pid: number; readonly userNamespace: boolean }
  | { readonly kind: 'by-helper'; readonly network: number; readonly helper: RootHelper }

export type { ExecOrder } from '../protocol/exec-order.ts'

export type ExecEnding =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: number }
  /** `errno` is a name: ENOENT means not found, every other one not executable. The reason is hostile text. */
  | { readonly kind: 'not-started'; readonly errno: string; readonly reason?: string }
  /** The sandbox or its exec daemon ended first. */
  | { readonly kind: 'lost' }

/**
 * Receives the output of a command, which is hostile. When it returns a promise, the stream waits until the promise
 * resolves.
 */
export type ExecOutput = (stream: 'stdout' | 'stderr', bytes: Uint8Array) => undefined | Promise<void>

export interface Execution {
  /** Resolves when there is room for more. */
  write(bytes: Uint8Array): Promise<void>
  endInput(): void
  resize(columns: number, rows: number): void
  /** Sends the signal to the command's process group. */
  signal(signal: NodeJS.Signals): void
  /** Sends SIGKILL to the command's group, its session and every descendant that pen can find. */
  kill(): void
  /** Resolves after the last byte of output was delivered. */
  readonly ended: Promise<ExecEnding>
}

/** A running sandbox. */
export interface Running {
  /**
   * Starts the command, which waits until then. A backend that judges actions itself writes this to the audit first.
   */
  begin(audit: AuditSink): void
  /** The sandbox has no namespaces. A count of the user's processes would include processes outside the sandbox. */
  readonly sharesHost?: true
  /** The backend judges each command itself, and gives the reason when it refuses one. */
  readonly judges?: true
  /**
   * Present when the exec daemon starts the commands. The plan then has no command, and `exec` may be called many
   * times.
   */
  readonly exec?: (order: ExecOrder, output: ExecOutput) => Execution
  /** Resolves when the exec daemon accepts orders, after `begin()`. Rejects when it ends before that. */
  readonly ready?: Promise<void>
  /** The host's directory that the sandbox sees, read-only, at `/run/pen`. It holds the sandbox's own sockets. */
  readonly inside?: string
  /** Messages for the user about facts that were known only after the start. */
  readonly notes?: readonly string[]
  /** Resolves when every process of the sandbox has ended. */
  readonly ended: Promise<Ending>
  /** The pid of the sandbox's first process on the host. Undefined when that process never started. */
  initPid(): number | undefined
  /** The process through which a guest of another kernel reaches the host's files. */
  filesPid?(): number | undefined
  /**
   * Connects to a server on the sandbox's loopback. Present when its network is in a kernel of its own, which the host's
   * sockets do not reach.
   */
  readonly dial?: (port: number) => Promise<StreamSocket>
  /** The network namespace, when pen cannot enter it through the first process. */
  readonly network?: Extract<MadeNamespace, { readonly kind: 'by-helper' }> | undefined
  /**
   * Resolves when the sandbox's own kernel refuses more processes. Only for sandboxes that the host's kernel cannot
   * count.
   */
  readonly full?: Promise<void>
  /** Present when pen, as its own user, may neither inspect nor kill the first process. */
  readonly reach?: InitHandle | undefined
  /** The sandbox's processes are not processes of the host's kernel. Only one with a file server can be paused. */
  readonly ownKernel?: true
  /** Kills every process of the sandbox by SIGKILL at once. */
  kill(): void
  /** Passes a signal to the command, as a terminal does. */
  signal(signal: NodeJS.Signals): void
  /** Absent when this backend cannot change the mounts of a running sandbox. */
  readonly mounts?: LiveMounts
}

/** A virtual machine is paused with its QEMU. Processes in another kernel, or of another user, cannot be. */
export const canBePaused = ({ ownKernel, filesPid, reach }: Running): boolean =>
  (ownKernel !== true || filesPid !== undefined) && reach === undefined

/** Where the sandbox's first process starts: its cgroup and its network namespace. */
export interface Placement {
  /** Open cgroup files that the process joins before anything else. */
  readonly joinFds: readonly number[]
  /** Words in front of the command line, such as a program that makes a systemd scope. */
  readonly wrap: readonly string[]
  /** The environment of the `wrap` program. The sandbox does not see it. */
  readonly env: Readonly<Record<string, string>>
  /** Runs a spawn inside the sandbox's network namespace, unless `wrap` enters it or there is none. */
  readonly within: <T>(spawn: () => T) => T
  /** True when `wrap` or `within` enters a network namespace that has a door. */
  readonly hasDoor: boolean
}

/** What a backend needs to judge actions itself. */
interface Rules {
  readonly policy: Policy
  /** The name of the sandbox, for commands in refusals. */
  readonly sandbox: string | undefined
  /** The command as the user wrote it, without words that pen puts in front. */
  readonly command: readonly string[]
  readonly world: PathWorld
  /** Gives the file grants of the user as they are at each call. */
  readonly grants: (audit: AuditSink) => () => readonly FileGrant[]
}

/** The image of a container, by its contents, and its accounts. */
export interface Image {
  readonly id: string
  readonly passwd: string
  readonly group: string
  readonly volumes: readonly string[]
  /** The PATH that the image sets. */
  readonly path: string
}

/** What only containers need. */
interface ContainerOptions {
  readonly image: Image | undefined
  /** The container that was requested before the plan. */
  readonly headStart: HeadStart | undefined
  /**
   * Opens the door in a network namespace that the backend made, as soon as it exists. The returned function uses the
   * root helper for the last time. It is called when every process of the sandbox has ended.
   */
  readonly openDoor: (namespace: MadeNamespace) => Promise<() => Promise<void>>
}

export interface StartOptions {
  /** The owner of containers, mounts and images. */
  readonly sandbox: { readonly id: string; readonly run: string; readonly stateDir: string }
  /** What a backend keeps between runs. The sandbox never sees the whole directory. */
  readonly cacheDir: string
  /** The three descriptors that cross the boundary, by their numbers on the host. */
  readonly stdio: readonly [number | 'inherit', number | 'inherit', number | 'inherit']
  /** Start the exec daemon instead of the plan's command. `exec` then starts commands. */
  readonly execDaemon: boolean
  /** Open for writing: a backend writes a line into it when it ends the sandbox of a pen that was killed. */
  readonly witness?: number
  /** The lock of the review layer. What ends the sandbox of a killed pen holds it until then. */
  readonly layerLock?: number | undefined
  /** Processes of this user's other sandboxes. Asked for as late as possible. */
  readonly neighbours?: () => readonly number[]
  readonly placement: Placement
  readonly rules: Rules
  readonly container: ContainerOptions
}

export interface Backend {
  readonly name: BackendName
  /**
   * Who makes the network namespace: pen before the start, or the backend during it. `loopback`: there is none, and the gateway listens
   * on the host's loopback behind a secret that only the sandbox knows.
   */
  readonly network: 'made-by-pen' | 'made-by-backend' | 'loopback'
  /** Every command is started by the exec daemon, also the command of `pen run`. */
  readonly daemonOnly?: true
  /** Printed when the start takes longer than a moment. */
  readonly slowStart?: string
  /** The engine that has the images. Absent where sandboxes use the host's own programs. */
  engine?(): Engine
  /**
   * Prepares what a start needs and the machine does not have, and returns its directory. `from` is a directory of the
   * user with the files. Absent where a start needs nothing of the kind.
   */
  prepareFiles?(cacheDir: string, tell: (line: string) => void, from: string | undefined): Promise<string>
  /** Begins slow work that needs no plan. It is harmless when no start follows, and ends with pen. */
  warm?(cacheDir: string): void
  /** Finds out what this machine can do, by trying. `cacheDir` keeps what stays true until the machine changes. */
  probe(cacheDir?: string): Promise<Capabilities>
  /** The cgroup limits that the engine holds, where the engine makes the cgroups. Call it after `probe`. */
  bounds?(): LimitSupport
  /** Processes and threads of the backend's own programs, which the host counts in addition to `limits.pids`. */
  readonly ownProcesses?: number
  /** Sets the sandbox up. Its command waits for `begin()`. */
  start(plan: Plan, options: StartOptions): Promise<Running>
}

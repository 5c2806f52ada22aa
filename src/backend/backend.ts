/**
 * What every backend is: a way to find out what this machine can do, and an interpreter of plans. Nothing outside this
 * directory branches on a backend's name; it asks for capabilities.
 */
import type { AuditSink } from '../audit/event.ts'
import type { DescriptorRan, DescriptorRun } from '../base/kernel/run-with-descriptors.ts'
import type { InitHandle } from '../limits/init-handle.ts'
import type { LimitSupport } from '../limits/probe.ts'
import type { Capabilities } from '../plan/gaps.ts'
import type { Plan } from '../plan/plan.ts'
import type { FileGrant } from '../policy/files/decide-grant.ts'
import type { PathWorld } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { BackendName } from '../policy/settings.ts'
import type { Engine } from './container/engine/engine.ts'
import type { HeadStart } from './container/head-start.ts'

/** How a sandbox ended: by its command, or by us. */
export type Ending = { readonly kind: 'exit'; readonly code: number } | { readonly kind: 'killed' }

/** What a sandbox meets at a path. */
export interface Seen {
  readonly dev: bigint
  readonly ino: bigint
  readonly kind: 'file' | 'directory' | 'link'
  /** Whether a mount begins here. */
  readonly mountPoint: boolean
}

/** A place to be held anew. `dev` and `ino` are of the file that the host has there: nothing else is mounted on. */
export interface HoldRequest {
  /** Nothing of it can be seen, or nothing of it can be written. */
  readonly how: 'cover' | 'protect'
  readonly path: string
  readonly dev: bigint
  readonly ino: bigint
}

/** `changed`: another file, or none, stood there by then. */
export type HoldResult = 'held' | 'changed' | { readonly failed: string }

/** Mounts in a sandbox that already runs, for what appears or is replaced meanwhile. */
export interface LiveMounts {
  /** False until the sandbox's tree is complete, and after its end. */
  ready(): boolean
  /** Links are not followed; undefined when there is nothing, or a link on the way. */
  look(path: string): Seen | undefined
  hold(requests: readonly HoldRequest[]): Promise<readonly HoldResult[]>
  /** When every process of the sandbox is gone. */
  close(): void
}

/** Does, for a supervisor without root, what root's supervisor does itself in namespaces that are root's. */
export interface RootHelper {
  /** Starts a program of the host as root, with these descriptors from 3 on. */
  run(
    argv: readonly string[],
    options: Omit<DescriptorRun, 'input'> & { readonly input?: string },
  ): Promise<DescriptorRan>
  /** What the rules of a network namespace refused, as the door has it; asked over a socket of that namespace. */
  listRefused(socket: number): Promise<unknown>
}

/** A network namespace that a backend made: pen enters it by one of its processes, or has that done by descriptor. */
export type MadeNamespace =
  | { readonly kind: 'of-process'; readonly pid: number; readonly userNamespace: boolean }
  | { readonly kind: 'by-helper'; readonly network: number; readonly helper: RootHelper }

export interface PreparedNamespace {
  /** Asks for the last time what a helper is needed for: every process of the sandbox is gone. */
  settle(): Promise<void>
}

/** A command for a sandbox that runs already. */
export interface ExecOrder {
  /** Empty: the shell inside, bash where there is one. */
  readonly argv: readonly string[]
  readonly cwd: string
  /** On top of the sandbox's own. */
  readonly env: readonly { readonly name: string; readonly value: string }[]
  /** With one, the command leads a session on a terminal of the sandbox's own. */
  readonly terminal: { readonly columns: number; readonly rows: number } | undefined
  /** stdout and stderr are one, told as stdout: what is written to both keeps its order. A terminal is one in any case. */
  readonly joined?: boolean
}

export type ExecEnding =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: number }
  /** `errno` by name: ENOENT means not found, all others not executable. The reason is hostile text. */
  | { readonly kind: 'not-started'; readonly errno: string; readonly reason?: string }
  /** The sandbox, or its exec daemon, ended first. */
  | { readonly kind: 'lost' }

/** What a command writes, hostile bytes. A promise holds that stream back until it is kept. */
export type ExecOutput = (stream: 'stdout' | 'stderr', bytes: Uint8Array) => undefined | Promise<void>

export interface Execution {
  /** Resolves when there is room for more. */
  write(bytes: Uint8Array): Promise<void>
  endInput(): void
  resize(columns: number, rows: number): void
  /** To its process group. */
  signal(signal: NodeJS.Signals): void
  /** By SIGKILL: its group, its session and every descendant that can be found. */
  kill(): void
  /** After the last byte of its output was delivered. */
  readonly ended: Promise<ExecEnding>
}

/** A running plan. */
export interface Running {
  /** Lets the command start: until then the sandbox is set up, and waits. A backend that judges by itself records that first. */
  begin(audit: AuditSink): void
  /** Its processes are in no namespace of their own: what counts a user's processes would count the others too. */
  readonly sharesHost?: true
  /** Judges each command by itself, and says why not. */
  readonly judges?: true
  /** Where commands are started by the exec daemon inside: there is no command of the plan's own, and these may be many. */
  readonly exec?: (order: ExecOrder, output: ExecOutput) => Execution
  /** Kept when the exec daemon takes orders, after `begin()`; broken when it never will. */
  readonly ready?: Promise<void>
  /** The host's directory that the sandbox sees, read-only, at `/run/pen`: for sockets to it alone. */
  readonly inside?: string
  /** What was only seen when it stood there, for a person. */
  readonly notes?: readonly string[]
  /** Resolves when every process of the sandbox is gone. */
  readonly ended: Promise<Ending>
  /** The sandbox's first process as the host sees it; undefined when there never was one. */
  initPid(): number | undefined
  /** Its network, where pen may not enter it by that process. */
  readonly network?: Extract<MadeNamespace, { readonly kind: 'by-helper' }> | undefined
  /** Kept when its own kernel refuses more processes, where the host's kernel cannot count them. */
  readonly full?: Promise<void>
  /** Where pen may neither look into that process nor end it, as itself. */
  readonly reach?: InitHandle | undefined
  /** Every process at once, by SIGKILL: nothing inside can catch or outlive it. */
  kill(): void
  /** Passes a signal on to the command, as a terminal would. */
  signal(signal: NodeJS.Signals): void
  /** Undefined when this backend cannot change a running sandbox's mounts. */
  readonly mounts?: LiveMounts
}

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
export interface Rules {
  readonly policy: Policy
  /** The command as the user wrote it, without words that pen puts in front. */
  readonly command: readonly string[]
  readonly world: PathWorld
  /** Gives the file grants of the user as they are at each call. */
  readonly grants: (audit: AuditSink) => Promise<() => readonly FileGrant[]>
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
export interface ContainerOptions {
  readonly image: Image | undefined
  /** The container that was requested before the plan. */
  readonly headStart: HeadStart | undefined
  /** Opens the door in a network namespace that the backend made, as soon as it exists. */
  readonly openDoor: (namespace: MadeNamespace) => Promise<PreparedNamespace>
  /** Called once, while the engine works and pen would only wait. */
  readonly meanwhile: (() => void) | undefined
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
  /** Begins slow work that needs no plan. It is harmless when no start follows, and ends with pen. */
  warm?(cacheDir: string): void
  /** Finds out what this machine can do, by trying. `cacheDir` keeps what stays true until the machine changes. */
  probe(cacheDir?: string): Promise<Capabilities>
  /** The cgroup limits that the engine holds, where the engine makes the cgroups. Call it after `probe`. */
  bounds?(): LimitSupport
  /** Sets the sandbox up. Its command waits for `begin()`. */
  start(plan: Plan, options: StartOptions): Promise<Running>
}

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

export interface StartOptions {
  /** The three descriptors that cross the boundary, by number on the host's side. */
  readonly stdio: readonly [number | 'inherit', number | 'inherit', number | 'inherit']
  /** For what a backend keeps between runs; the sandbox never sees it whole. */
  readonly cacheDir: string
  /** Open cgroup files that the first process joins before anything else. */
  readonly joinFds: readonly number[]
  /** A program in front of the engine, such as one that makes a scope. */
  readonly wrap: readonly string[]
  /** Runs a spawn where the sandbox's network namespace is; by itself where `wrap` does that or there is none. */
  readonly within: <T>(spawn: () => T) => T
  /** What that program needs in its environment; the sandbox does not see it. */
  readonly env: Readonly<Record<string, string>>
  /** True when `wrap` or `within` enters a network namespace that has a door. */
  readonly insideDoor: boolean
  /** Whose containers, mounts and images they are. */
  readonly sandbox: { readonly id: string; readonly run: string; readonly stateDir: string }
  /** What is to be run, in the user's own words: pen may have put others in front. */
  readonly command: readonly string[]
  /** For a backend that judges by itself. */
  readonly policy: Policy
  /** For the same: where paths are, and what the user grants while it runs, each time as it is then. */
  readonly judging: {
    readonly world: PathWorld
    readonly grants: (audit: AuditSink) => Promise<() => readonly FileGrant[]>
  }
  /** Called for a network namespace that the backend makes itself, as soon as it exists: the door is opened in it. */
  readonly furnish: (namespace: MadeNamespace) => Promise<PreparedNamespace>
  /** Called once, when an engine is at work and pen would only wait for it. */
  readonly meanwhile?: () => void
  /** What an engine was asked for before there was a plan. */
  readonly headStart?: HeadStart | undefined
  /** Begins with the exec daemon instead of the plan's command, which is then started by `exec`. */
  readonly daemon: boolean
  /** What a container is made of: by its contents, and the accounts that it has. */
  readonly image?: {
    readonly id: string
    readonly passwd: string
    readonly group: string
    readonly volumes: readonly string[]
    /** Its own PATH. */
    readonly path: string
  }
}

export interface Backend {
  readonly name: BackendName
  /** Makes the network namespace itself, and starts commands by the exec daemon. */
  readonly container?: true
  /** Who has the images that its sandboxes are made of. */
  engine?(): Engine
  /** Has no network namespace: the gateway listens on the host's loopback, behind a secret that only the sandbox is told. */
  readonly loopback?: true
  /** Begins what takes a while and needs no plan. Harmless when nothing follows: it ends with pen at the latest. */
  warm?(cacheDir: string): void
  /** Found by trying, not by looking for a file. What stays true until the machine changes may be kept in `cacheDir`. */
  probe(cacheDir?: string): Promise<Capabilities>
  /** Where the backend makes the cgroups itself: what they hold. After `probe`. */
  bounds?(): LimitSupport
  /** The sandbox is set up, or still being so; its command waits for `begin()`. */
  start(plan: Plan, options: StartOptions): Promise<Running>
}

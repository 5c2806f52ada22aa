/**
 * What will be done for a policy on one backend, as data: nothing here acts. A plan can be printed, compared and
 * tested without a kernel; only backends interpret it.
 */
import type { Bytes } from '../base/quantity.ts'
import type { GuestPath, HostPath } from '../policy/files/path.ts'
import type { Limits } from '../policy/policy.ts'
import type { BackendName, Isolation } from '../policy/settings.ts'
import type { Gap, Weaker } from './gaps.ts'

/** One operation on the sandbox's file tree. Steps are carried out in order; a later one covers an earlier one. */
export type Step =
  | {
      readonly op: 'bind'
      readonly from: HostPath
      readonly at: GuestPath
      readonly mode: 'ro' | 'rw'
      readonly why: string
    }
  | { readonly op: 'tmpfs'; readonly at: GuestPath; readonly size: Bytes; readonly mode: number }
  | {
      readonly op: 'cover'
      readonly at: GuestPath
      readonly kind: 'file' | 'directory'
      /** True for a directory with grants below it: it can be passed through, not listed, and a `seal` follows those grants. */
      readonly passable?: true
      readonly why: string
    }
  | { readonly op: 'file'; readonly at: GuestPath; readonly text: string }
  | { readonly op: 'link'; readonly at: GuestPath; readonly to: string }
  | { readonly op: 'devices'; readonly at: GuestPath }
  | { readonly op: 'processes'; readonly at: GuestPath }
  /** Makes a mount read-only after everything below it is in place. */
  | { readonly op: 'seal'; readonly at: GuestPath }

/** An environment variable; `secret` values are never printed. */
export interface Variable {
  readonly name: string
  readonly value: string
  readonly secret: boolean
}

export type NetworkPlan =
  /** A namespace with nothing in it. */
  | { readonly kind: 'none'; readonly why: string }
  /** A namespace in which every address is the gateway. */
  | { readonly kind: 'gateway' }
  /** The engine's own open network: a gap. */
  | { readonly kind: 'bridge' }

export interface Plan {
  readonly backend: BackendName
  readonly isolation: Isolation
  /** No kernel confines the sandbox: pen's gate judges every action. */
  readonly soft: boolean
  readonly workspace: HostPath
  readonly steps: readonly Step[]
  readonly argv: readonly string[]
  readonly cwd: GuestPath
  readonly env: readonly Variable[]
  readonly hostname: string
  /** The user that the sandbox sees itself as. */
  readonly user: { readonly uid: number; readonly gid: number }
  /** The user that its processes are on the host: the caller, or whom root becomes. */
  readonly runAs: 'self' | { readonly uid: number; readonly gid: number }
  readonly network: NetworkPlan
  readonly limits: Limits
  /** Nothing executes but listed programs, not even a file written inside. */
  readonly listedExec: boolean
  /** Then: the files, and the directories with all beneath, that may be executed. */
  readonly executable: readonly GuestPath[]
  /** Host directories that must exist before the start; pen makes those that are absent. */
  readonly makeDirectories: readonly HostPath[]
  /** Trees whose growth counts against `limits.disk`. */
  readonly growing: readonly HostPath[]
  /** Protected places that are absent now: the supervisor moves away what appears there. */
  readonly watch: readonly string[]
  readonly gaps: readonly Gap[]
  readonly weaker: readonly Weaker[]
  readonly notes: readonly string[]
  /** What `~/.gitconfig` holds where nothing is mounted. */
  readonly gitIdentity?: string
}

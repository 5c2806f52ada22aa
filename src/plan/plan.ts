/**
 * What to do for a policy on one backend, as data. A plan can be printed, compared and tested without a kernel. Only backends
 * act on it.
 */
import type { Bytes } from '../base/quantity.ts'
import type { GuestPath, HostPath } from '../policy/files/path.ts'
import type { Limits } from '../policy/policy.ts'
import type { BackendName, Isolation } from '../policy/settings.ts'
import type { Gap, Weaker } from './gaps.ts'

/** One operation on the sandbox's file tree. Steps run in order, and a later step covers an earlier one. */
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
      /** For a directory with grants below it: it can be traversed but not listed, and a `seal` follows the grants. */
      readonly passable?: true
      readonly why: string
    }
  | { readonly op: 'file'; readonly at: GuestPath; readonly text: string }
  | { readonly op: 'link'; readonly at: GuestPath; readonly to: string }
  | { readonly op: 'devices'; readonly at: GuestPath }
  | { readonly op: 'processes'; readonly at: GuestPath }
  /** Makes a mount read-only after everything below it is mounted. */
  | { readonly op: 'seal'; readonly at: GuestPath }

/** An environment variable. `secret` values are never printed. */
export interface Variable {
  readonly name: string
  readonly value: string
  readonly secret: boolean
}

export type NetworkPlan =
  /** An empty network namespace. */
  | { readonly kind: 'none'; readonly why: string }
  /** A network namespace in which every address leads to the gateway. */
  | { readonly kind: 'gateway' }
  /** The engine's open network: a gap. */
  | { readonly kind: 'bridge' }

/** A review layer over the project. `merged` in it is where the steps find the workspace. */
export interface PlannedLayer {
  readonly dir: HostPath
  /** Known when the layer is made: `overlay` is mounted at each start, and `copy` is a tree that is there. */
  readonly kind: 'overlay' | 'copy'
}

export const mergedIn = (layer: string): HostPath => `${layer}/merged` as HostPath

export interface Plan {
  readonly backend: BackendName
  readonly isolation: Isolation
  /** No kernel confines the sandbox: pen's gate judges every action. */
  readonly soft: boolean
  readonly workspace: HostPath
  readonly steps: readonly Step[]
  /** Undefined where the sandbox writes to the project itself. */
  readonly layer?: PlannedLayer | undefined
  readonly argv: readonly string[]
  readonly cwd: GuestPath
  readonly env: readonly Variable[]
  readonly hostname: string
  /** The user inside. */
  readonly user: { readonly uid: number; readonly gid: number }
  /** The user of its processes on the host: the caller, or the user that root becomes. */
  readonly runAs: 'self' | { readonly uid: number; readonly gid: number }
  readonly network: NetworkPlan
  readonly limits: Limits
  /** Only listed programs execute. A file written inside does not. */
  readonly listedExec: boolean
  /** For `listedExec`: files that may execute, and directories whose whole contents may. */
  readonly executable: readonly GuestPath[]
  /** Host directories that must exist before the start. pen makes the absent ones. */
  readonly makeDirectories: readonly HostPath[]
  /** Trees whose growth counts towards `limits.disk`. */
  readonly growing: readonly HostPath[]
  /** Protected places that are absent now. The supervisor quarantines what appears there. */
  readonly watch: readonly string[]
  readonly gaps: readonly Gap[]
  readonly weaker: readonly Weaker[]
  readonly notes: readonly string[]
  /** The contents of `~/.gitconfig` for a backend without mounts. */
  readonly gitIdentity?: string
}

/** What a plan needs to know of the host, gathered once before planning, so that planning itself stays pure. */
import type { GuestPath, HostPath, Located } from '../policy/path.ts'

/** A part of the host's system that exists: shown as it is, or as the link that it is. */
export type SystemEntry =
  | { readonly kind: 'tree'; readonly path: HostPath; readonly real: HostPath }
  | { readonly kind: 'link'; readonly path: HostPath; readonly to: string }

/** An existing file or directory, named without following a link in its last component. */
export interface Present {
  readonly path: string
  readonly kind: 'file' | 'directory'
}

/** Protected places and the workspace's git repository, as `sandbox/repository.ts` found them. */
export interface RepositoryView {
  /** Directories outside the workspace that git needs: the common directory of a linked worktree. */
  readonly mounts: readonly { readonly path: string; readonly mode: 'rw' }[]
  readonly protect: readonly { readonly path: string }[]
  readonly pins: readonly string[]
  readonly watch: readonly { readonly path: string }[]
  readonly warnings: readonly string[]
}

export interface HostFacts {
  readonly system: readonly SystemEntry[]
  /** What is at each granted, mounted and protected path. */
  readonly located: ReadonlyMap<string, Located>
  /** Places that exist now and that a denial covers, with the rule in words. */
  readonly denied: readonly (Present & { readonly why: string })[]
  readonly repository: RepositoryView
  /** Values of exactly those host variables that the policy passes on, and of terminal and locale. */
  readonly env: ReadonlyMap<string, string>
  /** The caller's own ids. */
  readonly identity: { readonly uid: number; readonly gid: number }
  /** Whom root becomes on the host: the project's owner, or for root's own project a uid that nobody has. */
  readonly insteadOfRoot: { readonly uid: number; readonly gid: number; readonly owner: boolean }
  readonly shell: GuestPath
  /** Directories of the host user's PATH that lie in what the sandbox sees. */
  readonly path: readonly string[]
  readonly volumes: HostPath
}

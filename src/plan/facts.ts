/** What a plan needs to know of the host, gathered once before planning, so that planning itself stays pure. */
import type { GuestPath, HostPath, Located } from '../policy/files/path.ts'

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

/** A program that the policy lists and the host has. */
export interface FoundTool {
  readonly name: string
  /** The links that lead to it, the first one where it was found. */
  readonly links: readonly { readonly at: string; readonly to: string }[]
  /** The program itself. */
  readonly file: string
  readonly shell: boolean
  /** The name of the program that interprets it, when it is a script. */
  readonly needs: string | undefined
  /** Not listed, but a listed script is started through it (`env`), and it does nothing but start another. */
  readonly implied: boolean
  /** What is executed together with it: its loader, and the directories of programs that only it calls. */
  readonly companions: readonly string[]
}

export interface ToolFacts {
  /** Directories of programs: covered when the policy lists its tools. */
  readonly directories: readonly string[]
  /** Programs in directories that hold other things too: covered one by one then. */
  readonly strays: readonly string[]
  readonly found: readonly FoundTool[]
  readonly missing: readonly string[]
  /** Every file that is a shell, for a policy without one. */
  readonly shells: readonly string[]
  readonly setsid: string | undefined
}

export interface HostFacts {
  readonly system: readonly SystemEntry[]
  /** What is at each granted, mounted and protected path. */
  readonly located: ReadonlyMap<string, Located>
  /** Places that exist now and that a denial covers, with the rule in words. */
  readonly denied: readonly (Present & { readonly why: string })[]
  readonly repository: RepositoryView
  /** Other spellings of a name lead to the same file, and a mount on one does not hold the others. */
  readonly foldsNames: boolean
  /** Values of exactly those host variables that the policy passes on, and of terminal and locale. */
  readonly env: ReadonlyMap<string, string>
  /** The caller's own ids. */
  readonly identity: { readonly uid: number; readonly gid: number }
  /**
   * Whom root becomes on the host: the project's owner, or for root's own project a uid that nobody has. Undefined when
   * the caller is not the host's root and can become nobody else.
   */
  readonly unprivilegedUser:
    | { readonly uid: number; readonly gid: number; readonly owner: boolean }
    | undefined
  readonly shell: GuestPath
  /** Where programs are looked for inside. */
  readonly path: readonly string[]
  /** Variables that tell toolchains where they are installed. */
  readonly toolchains: ReadonlyMap<string, string>
  /** The host's bundle of certificate authorities, where somebody has added some of their own. */
  readonly authorities?: HostPath | undefined
  readonly volumes: HostPath
  /** What agents are told, and where it lies in pen's own state; named by its content. */
  readonly note?: { readonly text: string; readonly file: HostPath }
  /** `user.name` and `user.email` of the user, as a file of git's configuration. */
  readonly gitIdentity?: string | undefined
  readonly tools: ToolFacts
}

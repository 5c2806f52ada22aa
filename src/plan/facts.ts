/** The facts about the host that a plan needs. They are gathered once before planning, so that planning stays pure. */
import type { GuestPath, HostPath, Located } from '../policy/files/path.ts'

/** A part of the host's system that exists: a directory tree, or a link. */
export type SystemEntry =
  | { readonly kind: 'tree'; readonly path: HostPath }
  | { readonly kind: 'link'; readonly path: HostPath; readonly to: string }

/** An existing file or directory. Its last component is not resolved. */
interface Present {
  readonly path: string
  readonly kind: 'file' | 'directory'
}

/**
 * A git directory of the host. The sandbox gets a directory of its own at the same path, which borrows the host's objects:
 * see `repository/`.
 */
export interface GitDirectory {
  readonly path: string
  /** Where the sandbox has the host's `objects` and `lfs`. Not in its own directory, which is the sandbox's to rename. */
  readonly lentAt: string
  /** Other object directories that the host's repository borrows from, as the sandbox finds them. */
  readonly alternates: readonly { readonly from: string; readonly at: string }[]
  readonly hasLfs: boolean
  /** Their directories lie below this one. Submodules of submodules are in the same list. */
  readonly submodules: readonly GitDirectory[]
}

/** Protected places and the workspace's git repository: see `survey/git/`. */
interface RepositoryView {
  /** Undefined when there is no repository, or none that works inside. */
  readonly git: GitDirectory | undefined
  /** Where the sandbox's own git directory will be on the host. */
  readonly own: HostPath
  /** Submodules without a checkout: the sandbox sees an empty directory of its own. */
  readonly emptyModules: readonly string[]
  readonly protect: readonly { readonly path: string }[]
  readonly pins: readonly string[]
  readonly watch: readonly { readonly path: string }[]
  readonly warnings: readonly string[]
}

/** A program that the policy lists and the host has. */
export interface FoundTool {
  readonly name: string
  /** The links that lead to the program. The first is where it was found. */
  readonly links: readonly { readonly at: string; readonly to: string }[]
  /** The program itself. */
  readonly file: string
  readonly shell: boolean
  /** The interpreter's name, when the program is a script. */
  readonly needs: string | undefined
  /** Not listed itself, but a listed script starts through it (`env`). It only starts other programs. */
  readonly implied: boolean
  /** What executes together with the program: its loader, and directories of helper programs that only it calls. */
  readonly companions: readonly string[]
}

export interface ToolFacts {
  /** Program directories. They are covered when the policy lists its tools. */
  readonly directories: readonly string[]
  /** Programs in directories that also hold other files. These are covered one by one. */
  readonly strays: readonly string[]
  readonly found: readonly FoundTool[]
  readonly missing: readonly string[]
  /** Every file that is a shell, for a policy without shells. */
  readonly shells: readonly string[]
  readonly setsid: string | undefined
}

export interface HostFacts {
  readonly system: readonly SystemEntry[]
  /** The file type at each granted, mounted and protected path. */
  readonly located: ReadonlyMap<string, Located>
  /** Existing paths that a denial covers, with the rule as text. */
  readonly denied: readonly (Present & { readonly why: string })[]
  readonly repository: RepositoryView
  /** The file system ignores case, so a mount on one spelling of a name does not cover the others. */
  readonly foldsNames: boolean
  /** The host variables that the policy passes, and those for terminal and locale. */
  readonly env: ReadonlyMap<string, string>
  /** The caller's ids. */
  readonly identity: { readonly uid: number; readonly gid: number }
  /**
   * The user that root becomes on the host: the project's owner, or an unused uid for a project of root's. Undefined when the
   * caller is not the host's root and cannot change users.
   */
  readonly unprivilegedUser:
    | { readonly uid: number; readonly gid: number; readonly owner: boolean }
    | undefined
  readonly shell: GuestPath
  /** PATH inside. */
  readonly path: readonly string[]
  /** Variables with the install directories of toolchains. */
  readonly toolchains: ReadonlyMap<string, string>
  /** The host's bundle of certificate authorities, if a local one was added to it. */
  readonly authorities?: HostPath | undefined
  readonly volumes: HostPath
  /** pen's directory of the review layer. Undefined where the sandbox writes to the project itself. */
  readonly layer?: HostPath | undefined
  /** The note for agents, and its file in pen's state, named by its content. */
  readonly note?: { readonly text: string; readonly file: HostPath }
  /** The user's `user.name` and `user.email`, as a git config file. */
  readonly gitIdentity?: string | undefined
  readonly tools: ToolFacts
}

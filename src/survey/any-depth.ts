/**
 * Deny globs that begin with `**` + `/`: which names they deny in each directory of the workspace, and which directories
 * are searched. The start searches the whole tree, and the supervisor searches what appears later. Links are not followed.
 */
import { closeSync } from 'node:fs'
import { openDirectory } from '../base/beneath/beneath.ts'
import { type DirectoryEntry, directoryEntries, type EntryType } from '../base/beneath/directory-entries.ts'
import { absent, lookAt } from '../base/beneath/look-at.ts'
import { decideFile } from '../policy/files/decide-file.ts'
import { type Glob, nameMatches } from '../policy/files/glob.ts'
import { depth, type HostPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { foldsCase } from './expand.ts'
import { isText, NO_TEXT } from './non-utf8-directories.ts'

/**
 * A path in the workspace. One with a non-UTF-8 name is a NUL and then its bytes as Latin-1, so that it can be opened
 * again.
 */
export type TreePath = string

/** A name that globs deny. Nothing can be covered at a path that is no text. */
interface DeniedName {
  readonly path: TreePath
  readonly globs: readonly Glob[]
}

export interface Visited {
  readonly denied: readonly DeniedName[]
  /** To be searched next. A denied directory is covered as a whole. */
  readonly directories: readonly TreePath[]
}

/** Called with the open directory. The listing needs access only when `list` is called. */
type Begin = (fd: number, list: () => void) => void

/** A sandbox may fill a directory: the caller gets a turn after this many names. */
const NAMES_PER_STEP = 256

export class AnyDepth {
  readonly workspace: string
  readonly globs: readonly Glob[]
  readonly #policy: Policy
  readonly #folded: readonly string[]
  /** Elsewhere in the sandbox's view: the host's files at these paths are not in it. */
  readonly #replaced: ReadonlySet<string>
  readonly #deniedPaths: ReadonlySet<string>
  readonly #anchored: readonly Glob[]

  /** Undefined for a policy without such globs, which needs no search. `git` is replaced by the sandbox's own directory. */
  static of(policy: Policy, git: string | undefined): AnyDepth | undefined {
    const globs = globsOf(policy).filter(glob => glob.anyDepth)
    return globs.length === 0 ? undefined : new AnyDepth(policy, globs, git)
  }

  private constructor(policy: Policy, globs: readonly Glob[], git: string | undefined) {
    this.#policy = policy
    this.workspace = policy.workspace
    this.globs = globs
    this.#folded = globs.map(({ components }) => (components.at(-1) ?? '').toLowerCase())
    const mounts = policy.mounts.filter(
      ({ rule }) => rule.kind === 'volume' || (rule.host as string) !== rule.at,
    )
    this.#replaced = new Set([
      ...mounts.map(({ rule }) => rule.at as string),
      ...(git === undefined ? [] : [git]),
    ])
    this.#deniedPaths = new Set(
      policy.files.deny.flatMap(({ rule }) => (rule.kind === 'path' ? [rule.path as string] : [])),
    )
    this.#anchored = globsOf(policy).filter(glob => !glob.anyDepth)
  }

  /** The globs that deny this name, whatever stands there. */
  denying(dir: TreePath, name: string): readonly Glob[] {
    const folded = name.toLowerCase()
    return this.globs.filter(
      (glob, i) => nameMatches(this.#folded[i] ?? '', folded) && this.#matches(glob, dir, name),
    )
  }

  /** Whether the sandbox sees nothing below this directory, by a rule that needs no search. */
  hides(dir: TreePath): boolean {
    // No rule names it, and no grant: a verdict on its bytes would say that the sandbox does not see it.
    if (isBytes(dir)) return false
    if (this.#replaced.has(dir)) return true
    const level = depth(dir) - depth(this.workspace)
    const mayBeDenied =
      this.#deniedPaths.has(dir) || this.#anchored.some(({ components }) => components.length === level)
    if (!mayBeDenied || decideFile(this.#policy, dir as HostPath, 'read').ok) return false
    return !this.#policy.files.read.some(({ rule }) => rule.path !== dir && isWithin(rule.path, dir))
  }

  /**
   * Lists one directory. Undefined when there is none, or when `begin` does not start the listing. Throws `Unseen` when
   * pen may not look.
   */
  *visit(
    dir: TreePath,
    begin: Begin = (_, list) => list(),
    open = openDirectory,
  ): Generator<void, Visited | undefined> {
    const fd = open(bytesOf(dir))
    if (fd === undefined) return undefined
    const entries = directoryEntries(fd)
    try {
      let first: IteratorResult<DirectoryEntry> | undefined
      begin(fd, () => {
        first = entries.next()
      })
      return first === undefined ? undefined : yield* this.#list(dir, first, entries)
    } catch (error) {
      return absent(error, bytesOf(dir))
    } finally {
      entries.return()
      closeSync(fd)
    }
  }

  *#list(
    dir: TreePath,
    first: IteratorResult<DirectoryEntry>,
    entries: Iterator<DirectoryEntry>,
  ): Generator<void, Visited> {
    const denied: DeniedName[] = []
    const directories: TreePath[] = []
    let seen = 0
    for (let next = first; next.done !== true; next = entries.next()) {
      if (++seen % NAMES_PER_STEP === 0) yield
      const { name: bytes, type } = next.value
      const name = bytes.toString()
      const path = below(dir, bytes, name)
      const globs = this.denying(dir, name)
      if (globs.length === 0 && (type === 'file' || type === 'link' || type === 'other')) continue
      const isDirectory = kindOf(path, type) === 'directory'
      if (globs.length > 0 && (isDirectory || mayDenyFiles(globs, type))) denied.push({ path, globs })
      else if (isDirectory && !this.hides(path)) directories.push(path)
    }
    return { denied, directories }
  }

  #matches({ components }: Glob, dir: TreePath, name: string): boolean {
    const above = components.length - 1
    if (above === 0) return isMatch(components[0] ?? '', dir, name)
    const names = shownPath(dir)
      .slice(this.workspace.length + 1)
      .split('/')
    if (names.length < above) return false
    for (let i = 0, at = dir; i <= above; i++) {
      const one = i === 0 ? name : (names.at(-i) ?? '')
      if (!isMatch(components[above - i] ?? '', at, one)) return false
      at = at.slice(0, at.lastIndexOf('/'))
    }
    return true
  }
}

const globsOf = (policy: Policy): Glob[] =>
  policy.files.deny.flatMap(({ rule }) => (rule.kind === 'glob' ? [rule.glob] : []))

/** As at the top: another spelling counts where it opens the same file. */
const isMatch = (pattern: string, dir: TreePath, name: string): boolean =>
  nameMatches(pattern, name) || (nameMatches(pattern, name, true) && foldsCase(shownPath(dir), [name]))

/** A link may lead to a directory. */
const mayDenyFiles = (globs: readonly Glob[], type: EntryType): boolean =>
  type !== 'file' || globs.some(glob => !glob.directoryOnly)

const kindOf = (path: TreePath, type: EntryType): EntryType =>
  type === 'unknown' && lookAt(bytesOf(path))?.isDirectory() ? 'directory' : type

const isBytes = (path: TreePath): boolean => path.startsWith('\0')

/** Whether a mount can name it. */
export const isTextPath = (path: TreePath): boolean => !isBytes(path)

export const bytesOf = (path: TreePath): string | Buffer =>
  isBytes(path) ? Buffer.from(path.slice(1), 'latin1') : path

/** For messages, with invalid bytes replaced. */
export const shownPath = (path: TreePath): string => bytesOf(path).toString()

function below(dir: TreePath, bytes: Buffer, name: string): TreePath {
  if (isTextPath(dir) && (!name.includes(NO_TEXT) || isText(bytes))) return `${dir}/${name}`
  const start = isTextPath(dir) ? `\0${Buffer.from(dir).toString('latin1')}` : dir
  return `${start}/${bytes.toString('latin1')}`
}

/** Says about each change what accept may do with it, and what the user should look at first. */
import { lookOrUnseen } from '../base/beneath/look-at.ts'
import { basename, dirname, join } from '../base/posix-path.ts'
import { isWithin } from '../policy/files/path.ts'
import { RUN_LATER } from '../policy/files/protected-places.ts'
import { folded, guardedPaths } from '../repository/consent/guarded-paths.ts'
import { parentsOf, pathText } from '../repository/sync/changed-paths.ts'
import type { Accepted } from './accepted.ts'
import { type Change, isBelow } from './change.ts'
import { type Entry, pathBelow } from './entry.ts'

export interface MarkOptions {
  readonly workspace: string
  /** When the layer was made, in milliseconds. */
  readonly made: number
  /** Whether the policy lets the sandbox write an absolute path without review. */
  readonly mayWrite: (path: string) => boolean
  /** Absolute paths that it may not write either: the survey found them. */
  readonly protectedPaths: readonly string[]
  /** What an earlier accept put into the project. */
  readonly accepted: Accepted
}

/** The clock of file systems is behind pen's by up to this. */
const SLACK_MS = 10
const later = RUN_LATER.map(path => path.toLowerCase())

export function markChanges(changes: readonly Change[], options: MarkOptions): readonly Change[] {
  const guard = new Guard(options)
  const repositories = gitDirectories(changes, options.workspace)
  const since = BigInt(Math.floor(options.made) - SLACK_MS) * 1_000_000n
  const moved = new MovedDirectories(options, since)
  return changes.map(change => {
    const { path, before } = change
    const isEdited =
      before !== undefined &&
      before.type !== 'directory' &&
      ((before.ctimeNs >= since && !options.accepted.has(path, before)) || moved.has(path))
    const isOfGit = isGit(path) || [path, ...parentsOf(path), '.'].some(part => repositories.has(part))
    const refused = change.refused ?? (isOfGit ? GIT : undefined)
    const attention = attentionFor(change, options.workspace)
    return {
      ...change,
      ...(refused !== undefined && { refused }),
      ...(guard.protects(path, before, change.after) && { protected: PROTECTED }),
      ...(isEdited && { conflict: 'you changed it after the sandbox started' }),
      ...(attention !== undefined && { attention }),
    }
  })
}

/**
 * Directories that the user moved into place. That renews the ctime of the directory alone: what is in it looks as old as it is. A
 * change in a directory renews its mtime as well.
 */
class MovedDirectories {
  readonly #known = new Map<string, boolean>()
  readonly #options: Pick<MarkOptions, 'workspace' | 'accepted'>
  readonly #since: bigint

  constructor(options: Pick<MarkOptions, 'workspace' | 'accepted'>, since: bigint) {
    this.#options = options
    this.#since = since
  }

  /** Whether `path` is in one. */
  has(path: string): boolean {
    const parent = dirname(path)
    if (parent === '.') return false
    const known = this.#known.get(parent) ?? (this.#isMoved(parent) || this.has(parent))
    this.#known.set(parent, known)
    return known
  }

  #isMoved(path: string): boolean {
    const { workspace, accepted } = this.#options
    const stats = lookOrUnseen(pathBelow(workspace, path))
    return (
      stats !== undefined &&
      stats !== 'unseen' &&
      stats.ctimeNs >= this.#since &&
      stats.ctimeNs - stats.mtimeNs > BigInt(SLACK_MS) * 1_000_000n &&
      !accepted.has(path, stats)
    )
  }
}

const GIT = 'it is part of a git repository that the sandbox made'
/** The host's git runs what such a directory names. */
const isGit = (path: string): boolean => /(?:^|\/)\.git(?:~\d+)?(?:\/|$)/.test(folded(pathText(path)))

/** By these, git takes a directory of any name for a repository. */
const PARTS = new Set(['head', 'objects', 'refs', 'commondir'])

/** Those that the project would have, when some of the parts are in the project and the others come. */
function gitDirectories(changes: readonly Change[], workspace: string): ReadonlySet<string> {
  const parts = new Map<string, Set<string>>()
  const gone = new Set<string>()
  for (const { path, after } of changes) {
    const name = folded(pathText(basename(path)))
    if (!PARTS.has(name)) continue
    if (after === undefined) gone.add(path)
    const parent = dirname(path)
    const inside = parts.get(parent) ?? new Set()
    if (after !== undefined) inside.add(name)
    parts.set(parent, inside)
  }
  const has = (parent: string, name: string): boolean => {
    const path = join(parent, name)
    if (parts.get(parent)?.has(name.toLowerCase()) === true) return true
    return !gone.has(path) && lookOrUnseen(pathBelow(workspace, path)) !== undefined
  }
  const isOne = (parent: string): boolean =>
    has(parent, 'HEAD') && (has(parent, 'commondir') || (has(parent, 'objects') && has(parent, 'refs')))
  return new Set([...parts.keys()].filter(isOne))
}

type GuardOptions = Pick<MarkOptions, 'workspace' | 'mayWrite' | 'protectedPaths'>

/** What a sandbox may not write without review is accepted only by its name. */
export class Guard {
  readonly #options: GuardOptions
  readonly #places: ReturnType<typeof guardedPaths>

  constructor(options: GuardOptions) {
    this.#options = options
    this.#places = guardedPaths(options.workspace, { ...options, heldPaths: [] })
  }

  /** A link above a protected path brings it as well. */
  protects(path: string, before?: Entry, after?: Entry): boolean {
    const { workspace, mayWrite } = this.#options
    const text = pathText(path)
    const spelled = folded(text)
    return (
      this.#places.isPlace(text, modeOf(before), modeOf(after)) ||
      (spelled !== text && !mayWrite(`${workspace}/${spelled}`))
    )
  }
}

/** As git writes it. */
const modeOf = (entry: Entry | undefined): string =>
  entry === undefined ? '' : entry.type === 'link' ? '120000 link' : '100644 file'

const PROTECTED = 'the sandbox may not write it without review'

function attentionFor({ path, after }: Change, workspace: string): string | undefined {
  if (after?.type === 'link' && leadsOut(path, after.content ?? '', workspace))
    return 'the link leads out of the project'
  const lower = path.toLowerCase()
  return after !== undefined && later.some(place => isBelow(lower, place))
    ? 'your machine runs it when you build, test or push'
    : undefined
}

function leadsOut(path: string, target: string, workspace: string): boolean {
  if (target.startsWith('/')) return !isWithin(join(pathText(target)), workspace)
  return /^\.\.(?:\/|$)/.test(join(dirname(path), target))
}

/**
 * Removes links in a git directory. git makes none, but writes through those that it finds. The host's next `git merge`
 * would write its message, with a branch name that the sandbox chose, into any file of the user that a link names. The next
 * `git fetch --prune` would delete branches of another repository.
 */
import { closeSync, readdirSync, readlinkSync, unlinkSync } from 'node:fs'
import { at, CHANGE, LIST, openDirectory, unlock, withAccess } from '../../base/beneath/beneath.ts'
import { directoryEntries } from '../../base/beneath/directory-entries.ts'
import { absent, lookAt, Unseen } from '../../base/beneath/look-at.ts'
import { errnoOf } from '../../base/error.ts'
import { resolve } from '../../base/posix-path.ts'
import { isWithin } from '../../policy/files/path.ts'

export interface GitTree {
  readonly path: string
  /** A directory whose own path the sandbox cannot change; the walk to `path` begins here. */
  readonly root: string
  /** Links at its top, in `logs` or in `refs` at the start, by name. Some tools build a repository from parts of another. */
  readonly links: readonly string[]
}

export interface RemovedLink {
  readonly path: string
  /** Its target. Hostile text. */
  readonly to: string
}

/** Names where links are the user's (hooks in the project, a shared exclude file), or where git does not write by name. */
const SKIPPED = new Set(['objects', 'hooks', 'info', 'lfs', 'annex'])
/** Files that git writes by name. All of `logs`, `refs` and the directories of an unfinished rebase count too. */
const WRITTEN = /^(?:[A-Z][A-Z_]+|index|packed-refs|shallow|gc\.log|logs|refs|rebase-\w+|sequencer)$/
/** Directories that hold other git directories. */
const NESTED = new Set(['modules', 'worktrees'])
const WRITTEN_WHOLE = /^(?:logs|refs|rebase-\w+|sequencer)$/
/** This runs four times a second, so it is bounded even with many branches. The last look at the end is complete. */
const MAX_ENTRIES = { busy: 2000, all: Number.POSITIVE_INFINITY }
/** Each level takes a descriptor. */
const MAX_DEPTH = { busy: 1, all: 256 }

export const linksAtTop = (gitDir: string): readonly string[] => [
  ...linksIn(gitDir),
  ...['logs', 'refs'].flatMap(inner => linksIn(`${gitDir}/${inner}`).map(name => `${inner}/${name}`)),
]

function linksIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter(entry => entry.isSymbolicLink())
      .map(entry => entry.name)
  } catch (error) {
    return absent(error, dir) ?? []
  }
}

/**
 * `root` is an open directory. Every step works by descriptor, because a sandbox may swap names at the same time. Returns
 * whether everything was seen; removed links are in `removed`.
 */
export function* removeLinks(
  root: number,
  tree: GitTree,
  extent: 'busy' | 'all',
  removed: RemovedLink[],
): Generator<void, boolean, void> {
  // When the workspace itself is the git directory, it has other content too.
  const isWorkspace = tree.path === tree.root
  const isTop = (below: readonly string[]) => below.length === 0 && !isWorkspace
  let left = MAX_ENTRIES[extent]
  let all = true
  function* visit(dir: number, name: Buffer, below: readonly string[], whole: boolean): Walk {
    const path = [tree.path, ...below].join('/')
    const text = name.toString()
    const stats = lookAt(at(dir, name))
    const known = below.length < 2 && tree.links.includes([...below, text].join('/'))
    if (stats?.isSymbolicLink() && !known && (whole || WRITTEN.test(text) || isTop(below))) {
      const to = removeOutward(dir, name, path, tree.path)
      if (to !== undefined) removed.push({ path: `${path}/${text}`, to })
    }
    if (!stats?.isDirectory()) return
    if (!whole && SKIPPED.has(text) && below.at(-1) !== 'modules') return
    const written = WRITTEN_WHOLE.test(text)
    if (!whole && !written && (extent === 'busy' || (isWorkspace && !NESTED.has(below[0] ?? text)))) return
    if (below.length >= MAX_DEPTH[extent]) all = false
    else yield* enter(at(dir, name), inner => walk(inner, [...below, text], whole || written))
  }
  function* walk(dir: number, below: readonly string[], whole: boolean): Walk {
    // A sandbox may fill them to hide a link. So all of `refs` comes first, and names that git rarely writes come last.
    const later = new Set<string>()
    for (const { name, type } of directoryEntries(dir)) {
      yield
      if (left-- <= 0) {
        all = false
        return
      }
      if (type === 'file') continue
      if (LATER.includes(name.toString())) later.add(name.toString())
      else yield* visit(dir, name, below, whole)
    }
    for (const name of LATER) if (later.has(name)) yield* visit(dir, Buffer.from(name), below, whole)
  }
  function* inside(dir: number, act: () => Walk): Walk {
    const lock = unlock(dir, LIST)
    try {
      yield* act()
    } catch (error) {
      // Locked, and pen may not unlock it.
      if (errnoOf(error) === undefined && !(error instanceof Unseen)) throw error
      all = false
    } finally {
      lock()
    }
  }
  function* enter(path: string | Buffer, act: (dir: number) => Walk): Walk {
    const dir = openDirectory(path)
    if (dir === undefined) return
    try {
      yield* inside(dir, () => act(dir))
    } finally {
      closeSync(dir)
    }
  }
  function* descend(dir: number, rest: readonly string[]): Walk {
    const [first, ...more] = rest
    if (first === undefined) yield* walk(dir, [], false)
    else yield* enter(at(dir, first), inner => descend(inner, more))
  }
  yield* inside(root, () => descend(root, tree.path.slice(tree.root.length).split('/').slice(1)))
  return all
}

type Walk = Generator<void, void, void>

const LATER = ['refs', ...NESTED]

/** A link that stays within the git directory is kept: its target is checked separately. */
function removeOutward(dir: number, name: Buffer, path: string, gitDir: string): string | undefined {
  try {
    const to = readlinkSync(at(dir, name))
    if (isWithin(resolve(path, to), gitDir)) return undefined
    withAccess(dir, CHANGE, () => unlinkSync(at(dir, name)))
    return to
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

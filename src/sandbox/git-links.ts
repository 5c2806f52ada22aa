/**
 * Links in a git directory. git makes none, and writes through those that it finds: the host's next `git merge` would put its message,
 * with the name of the sandbox's branch in it, into whatever file of the user's such a link leads to, and its next `git fetch --prune`
 * would take another repository's branches for its own. So they are taken away.
 */
import { closeSync, readdirSync, readlinkSync, unlinkSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { resolve } from '../base/posix-path.ts'
import { isWithin } from '../policy/path.ts'
import { at, itself, look, openDirectory } from './beneath.ts'

export interface GitTree {
  readonly path: string
  /** A directory whose own path the sandbox cannot change; the walk to `path` begins here. */
  readonly root: string
  /** Links that stood at its top, in `logs` or in `refs` at the start, by name: some tools build a repository from parts of another. */
  readonly links: readonly string[]
}

export interface RemovedLink {
  readonly path: string
  /** Where it led, as it said. Hostile text. */
  readonly to: string
}

/** Where links are the user's own business (hooks that lead into the project, a shared list of excludes), or nothing is written by name. */
const SKIPPED = new Set(['objects', 'hooks', 'info', 'lfs', 'annex'])
/** What git writes by name, in every git directory; all of what is in `logs` and `refs`, and in the directories of an unfinished rebase. */
const WRITTEN = /^(?:[A-Z][A-Z_]+|index|packed-refs|shallow|gc\.log|logs|refs|rebase-\w+|sequencer)$/
/** Where other git directories are. */
const NESTED = new Set(['modules', 'worktrees'])
const WRITTEN_WHOLE = /^(?:logs|refs|rebase-\w+|sequencer)$/
/** Four times a second must cost nothing that is felt, however many branches there are; at the end it may. */
const MAX_ENTRIES = { busy: 500, all: 20_000 }
const MAX_DEPTH = { busy: 1, all: 24 }

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
    if (errnoOf(error) === undefined) throw error
    return []
  }
}

/** `root` is open. Every step is asked of a descriptor: a sandbox may be swapping things meanwhile. */
export function removeLinks(root: number, tree: GitTree, extent: 'busy' | 'all'): readonly RemovedLink[] {
  const removed: RemovedLink[] = []
  // Where the workspace is the git directory, it holds other things besides.
  const isWorkspace = tree.path === tree.root
  const isTop = (below: readonly string[]) => below.length === 0 && !isWorkspace
  let left = MAX_ENTRIES[extent]
  const walk = (dir: number, below: readonly string[], whole: boolean): void => {
    const path = [tree.path, ...below].join('/')
    for (const name of nestedLast(namesIn(dir))) {
      if (left-- <= 0) return
      const text = name.toString()
      const stats = look(at(dir, name))
      const known = below.length < 2 && tree.links.includes([...below, text].join('/'))
      if (stats?.isSymbolicLink() && !known && (whole || WRITTEN.test(text) || isTop(below))) {
        const to = removeOutward(dir, name, path, tree.path)
        if (to !== undefined) removed.push({ path: `${path}/${text}`, to })
      }
      if (!stats?.isDirectory() || below.length >= MAX_DEPTH[extent]) continue
      if (!whole && SKIPPED.has(text) && below.at(-1) !== 'modules') continue
      const written = WRITTEN_WHOLE.test(text)
      if (!whole && !written && (extent === 'busy' || (isWorkspace && !NESTED.has(below[0] ?? text))))
        continue
      enter(at(dir, name), inner => walk(inner, [...below, text], whole || written))
    }
  }
  const names = tree.path.slice(tree.root.length).split('/').slice(1)
  const descend = (dir: number, rest: readonly string[]): void => {
    const [first, ...more] = rest
    if (first === undefined) walk(dir, [], false)
    else enter(at(dir, first), inner => descend(inner, more))
  }
  descend(root, names)
  return removed
}

/** What is in them may be made many to hide the rest: the least likely to be written comes last, before it all that is in `refs`. */
const nestedLast = (names: readonly Buffer[]): readonly Buffer[] => {
  const turn = (name: Buffer) => (NESTED.has(name.toString()) ? 2 : name.toString() === 'refs' ? 1 : 0)
  return [0, 1, 2].flatMap(now => names.filter(name => turn(name) === now))
}

function enter(path: string | Buffer, act: (dir: number) => void): void {
  const dir = openDirectory(path)
  if (dir === undefined) return
  try {
    act(dir)
  } finally {
    closeSync(dir)
  }
}

/** All but plain files, which are most: the listing itself tells them, and they need no question each. */
function namesIn(dir: number): readonly Buffer[] {
  try {
    const entries = readdirSync(itself(dir), { withFileTypes: true })
    // A name that is no text would not be found again by what is left of it.
    if (entries.some(({ name }) => name.includes('\ufffd')))
      return readdirSync(itself(dir), { encoding: 'buffer' })
    return entries.filter(entry => !entry.isFile()).map(({ name }) => Buffer.from(name))
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return []
  }
}

/** One that stays within the git directory is left: what it leads to is judged by itself. */
function removeOutward(dir: number, name: Buffer, path: string, gitDir: string): string | undefined {
  try {
    const to = readlinkSync(at(dir, name))
    if (isWithin(resolve(path, to), gitDir)) return undefined
    unlinkSync(at(dir, name))
    return to
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

/**
 * Links in a git directory. git makes none, and writes through those that it finds: the host's next `git merge` would put its message,
 * with the name of the sandbox's branch in it, into whatever file of the user's such a link leads to. So they are taken away.
 */
import { closeSync, readdirSync, readlinkSync, unlinkSync } from 'node:fs'
import { resolve } from 'node:path'
import { errnoOf } from '../base/error.ts'
import { isWithin } from '../policy/path.ts'
import { at, itself, look, openDirectory } from './beneath.ts'

export interface GitTree {
  readonly path: string
  /** A directory whose own path the sandbox cannot change; the walk to `path` begins here. */
  readonly root: string
  /** Links that stood at its top at the start, by name: some tools build a repository from parts of another. */
  readonly links: readonly string[]
}

export interface RemovedLink {
  readonly path: string
  /** Where it led, as it said. Hostile text. */
  readonly to: string
}

/** Files of git's own making, many and never written through a name that stands there: not worth a walk. */
const CONTENT = new Set(['objects', 'lfs', 'annex'])
/** Where git writes all the time; looked at while the sandbox runs. The rest is seen to at its end. */
const BUSY = new Set(['logs', 'info'])
/** What git itself writes at the top of its directory, where that is the workspace too, and holds other things besides. */
const WRITTEN =
  /^(?:[A-Z_]+|index.*|sharedindex\..*|packed-refs|shallow|description|logs|info|refs|modules|worktrees|rebase-.*|sequencer|rr-cache|gc\..*|objects)$/
/** Four times a second must cost nothing that is felt, however many branches there are; at the end it may. */
const MAX_ENTRIES = { busy: 500, all: 20_000 }
const MAX_DEPTH = { busy: 1, all: 24 }

export function linksAtTop(gitDir: string): readonly string[] {
  try {
    return readdirSync(gitDir, { withFileTypes: true })
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
  let left = MAX_ENTRIES[extent]
  const walk = (dir: number, path: string, depth: number): void => {
    for (const name of namesIn(dir)) {
      if (left-- <= 0) return
      if (depth === 0 && tree.path === tree.root && !WRITTEN.test(name.toString())) continue
      const here = `${path}/${name}`
      const stats = look(at(dir, name))
      if (stats?.isSymbolicLink() && !(depth === 0 && tree.links.includes(name.toString()))) {
        const to = removeOutward(dir, name, path, tree.path)
        if (to !== undefined) removed.push({ path: here, to })
      }
      const text = name.toString()
      if (!stats?.isDirectory() || depth >= MAX_DEPTH[extent] || CONTENT.has(text)) continue
      if (extent === 'busy' && depth === 0 && !BUSY.has(text)) continue
      enter(at(dir, name), inner => walk(inner, here, depth + 1))
    }
  }
  const names = tree.path.slice(tree.root.length).split('/').slice(1)
  const descend = (dir: number, rest: readonly string[]): void => {
    const [first, ...more] = rest
    if (first === undefined) walk(dir, tree.path, 0)
    else enter(at(dir, first), inner => descend(inner, more))
  }
  descend(root, names)
  return removed
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

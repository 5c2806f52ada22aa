/**
 * Follows links one by one and caches every step. `realpath` returns only the end of a path. A sandbox that can replace a link
 * on the way decides where the path ends next time, so every name in a writable directory counts.
 */
import { lstatSync, readlinkSync, type Stats } from 'node:fs'
import { errnoOf } from '../../base/error.ts'

export interface Trail {
  /** The end of the path, without links. An absent part keeps its name. */
  readonly end: string
  /** Undefined when nothing exists there. */
  readonly stats: Stats | undefined
  /** The links in watched directories that the path passes. */
  readonly through: readonly string[]
}

const NOWHERE: Trail = { end: '', stats: undefined, through: [] }
/** Deeper than any real path, so that the recursion ends. */
const MAX_DEPTH = 400

export class LinkTrails {
  readonly #isWatched: (path: string) => boolean
  readonly #known = new Map<string, Trail>()

  constructor(isWatched: (path: string) => boolean) {
    this.#isWatched = isWatched
  }

  /** Marks a path as free of links, which saves a lookup for each of its parts. */
  isReal(path: string): void {
    this.#known.set(path, { end: path, stats: lookAt(path), through: [] })
  }

  follow(path: string, depth = 0): Trail {
    const known = this.#known.get(path)
    if (known !== undefined) return known
    if (path === '' || path === '/' || depth > MAX_DEPTH) return NOWHERE
    // A link loop finds this entry.
    this.#known.set(path, NOWHERE)
    const trail = this.#step(path, depth)
    this.#known.set(path, trail)
    return trail
  }

  #step(path: string, depth: number): Trail {
    const slash = path.lastIndexOf('/')
    const name = path.slice(slash + 1)
    const parent = this.follow(path.slice(0, slash), depth + 1)
    if (name === '' || name === '.') return parent
    if (name === '..') {
      const end = parent.end.slice(0, Math.max(0, parent.end.lastIndexOf('/')))
      return { ...parent, end }
    }
    const end = `${parent.end}/${name}`
    const through = parent.through.map(way => `${way}/${name}`)
    // Nothing exists below an absent path or a file. The root itself was not looked up.
    if (parent.end !== '' && parent.stats?.isDirectory() !== true) return { end, stats: undefined, through }
    const stats = lookAt(end)
    const text = stats?.isSymbolicLink() === true ? linkText(end) : undefined
    if (text === undefined) return { end, stats, through }
    const target = this.follow(text.startsWith('/') ? text : `${parent.end}/${text}`, depth + 1)
    const own = this.#isWatched(end) ? [end] : []
    return { ...target, through: [...through, ...own, ...target.through] }
  }
}

export function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    // Not accessible, or not a valid path: without root the user's programs find nothing there either.
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

function linkText(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

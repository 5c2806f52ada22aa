/**
 * Caches which names in a very large directory match a pattern. Listing 200,000 entries takes 65 ms, and reading the
 * directory's change time takes 2 µs. A sandbox cannot set the change time, so an old one proves that the cache is valid.
 */
import { type BigIntStats, readFileSync } from 'node:fs'
import { lookAt } from '../base/beneath/look-at.ts'
import { errnoOf } from '../base/error.ts'
import { matchingNames } from './expand.ts'

interface Remembered {
  readonly state: string
  readonly names: readonly string[]
}

export interface ListingCacheOptions {
  /** A file in pen's state, which no sandbox can reach. */
  readonly file: string
  /** Writes it atomically. */
  readonly save: (file: string, text: string) => void
  readonly now?: () => number
}

/** Listing a smaller directory is faster than reading the cache. On ext4 about 2,000 names. */
const LARGE = 65_536n
/** A directory that changed this recently may change again with the same timestamp. */
const SETTLED_MS = 2000
const MAX_FILE = 1_000_000

export class ListingCache {
  readonly #options: ListingCacheOptions
  #known: Record<string, Remembered> | undefined

  constructor(options: ListingCacheOptions) {
    this.#options = options
  }

  matching(dir: string, component: string): readonly string[] {
    const stats = lookAt(dir)
    if (stats === undefined || stats.size < LARGE) return matchingNames(dir, component)
    const key = `${stats.dev}:${stats.ino}:${component}`
    const state = stateOf(stats)
    this.#known ??= this.#read()
    const before = this.#known[key]
    if (before !== undefined && before.state === state) return before.names
    const { now = Date.now } = this.#options
    const asked = now()
    const names = matchingNames(dir, component)
    const settled = asked - Number(stats.ctimeNs / 1_000_000n) >= SETTLED_MS
    const after = lookAt(dir)
    if (settled && after !== undefined && stateOf(after) === state) this.#remember(key, { state, names })
    return names
  }

  #remember(key: string, entry: Remembered): void {
    const known = { ...this.#known, [key]: entry }
    this.#known = known
    const text = JSON.stringify(known)
    // The cache is full: start again with this entry.
    this.#options.save(this.#options.file, text.length <= MAX_FILE ? text : JSON.stringify({ [key]: entry }))
  }

  #read(): Record<string, Remembered> {
    try {
      const known: unknown = JSON.parse(readFileSync(this.#options.file, 'utf8'))
      const clean: Record<string, Remembered> = Object.create(null)
      if (typeof known !== 'object' || known === null) return clean
      for (const [key, entry] of Object.entries(known)) if (isRemembered(entry)) clean[key] = entry
      return clean
    } catch (error) {
      // Absent or truncated: only time is lost.
      if (errnoOf(error) === undefined && !(error instanceof SyntaxError)) throw error
      return Object.create(null)
    }
  }
}

const stateOf = (stats: BigIntStats): string => `${stats.ctimeNs}:${stats.mtimeNs}:${stats.size}`

const isRemembered = (entry: unknown): entry is Remembered =>
  typeof entry === 'object' &&
  entry !== null &&
  'state' in entry &&
  typeof entry.state === 'string' &&
  'names' in entry &&
  Array.isArray(entry.names) &&
  entry.names.every(name => typeof name === 'string' && !name.includes('/'))

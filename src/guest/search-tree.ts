/**
 * Searches a tree for text or names. It runs inside the sandbox, so a slow expression or a hostile tree costs only the
 * sandbox.
 */
import { type Dirent, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from '../base/posix-path.ts'
import {
  type GivenFile,
  MAX_SEARCHED,
  type Match,
  type MatchOrder,
  type SearchOrder,
  SKIPPED_DIRECTORIES,
  type Wanted,
} from '../protocol/file-order.ts'

const LONGEST_LINE = 400

type Told = Match | { readonly more: true } | { readonly tooLong: string }

export function* searchTree(order: SearchOrder): Generator<Told> {
  const search = new Search(order)
  for (const path of filesIn(order.path)) {
    if (search.opens(path) && isTooLong(path)) yield { tooLong: path }
    else yield* search.in(path, () => contentOf(path))
    if (search.isOver) return
  }
}

/** Searches files that the caller has opened. */
export async function* searchGiven(
  order: MatchOrder,
  input: AsyncIterable<Uint8Array>,
): AsyncGenerator<Told> {
  const search = new Search(order)
  let held = Buffer.alloc(0)
  let next: GivenFile | undefined
  for await (const bytes of input) {
    held = Buffer.concat([held, bytes])
    for (;;) {
      if (next === undefined) {
        const end = held.indexOf(10)
        if (end < 0) break
        next = JSON.parse(held.toString('utf8', 0, end)) as GivenFile
        held = held.subarray(end + 1)
      }
      if (held.length < next.size) break
      const { path, size } = next
      const content = held.subarray(0, size)
      yield* search.in(path, () => content)
      if (search.isOver) return
      held = held.subarray(size)
      next = undefined
    }
  }
}

class Search {
  readonly #matches: RegExp | undefined
  readonly #named: (path: string) => boolean
  #left: number
  isOver: boolean = false

  constructor(wanted: Wanted) {
    this.#matches = wanted.pattern === '' ? undefined : expression(wanted)
    this.#named = nameTest(wanted.name)
    this.#left = wanted.most
  }

  /** True when the content of this file has to be searched. */
  opens(path: string): boolean {
    return this.#matches !== undefined && this.#named(path)
  }

  *in(path: string, read: () => Buffer | undefined): Generator<Told> {
    if (!this.#named(path)) return
    const found =
      this.#matches === undefined ? [{ path, line: 0, text: '' }] : linesOf(path, this.#matches, read)
    for (const match of found) {
      if (this.#left-- > 0) {
        yield match
        continue
      }
      this.isOver = true
      yield { more: true }
      return
    }
  }
}

function expression({ pattern, ignoreCase }: Wanted): RegExp {
  try {
    return new RegExp(pattern, ignoreCase ? 'iu' : 'u')
  } catch {
    throw Object.assign(new Error('not a regular expression'), { code: 'EINVAL' })
  }
}

/**
 * With `*` or `?` it matches the whole name, or with a slash the end of the path. Otherwise it matches any part of the
 * path.
 */
function nameTest(name: string): (path: string) => boolean {
  if (!/[*?]/.test(name)) return path => path.includes(name)
  const source = name.replace(/\*\*\/|\*+|[?.+^${}()|[\]\\]/g, part =>
    part === '**/' ? '(?:.*/)?' : part.startsWith('*') ? '[^/]*' : part === '?' ? '[^/]' : `\\${part}`,
  )
  const test = new RegExp(`^${source}$`)
  const whole = new RegExp(`(^|/)${source}$`)
  return name.includes('/') ? path => whole.test(path) : path => test.test(basename(path))
}

/** Does not follow links, which could form a cycle. */
function* filesIn(path: string): Generator<string> {
  const stats = lstatSync(path)
  if (stats.isFile()) yield path
  if (!stats.isDirectory()) return
  let entries: Dirent[]
  try {
    entries = readdirSync(path, { withFileTypes: true })
  } catch {
    return
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    if (SKIPPED_DIRECTORIES.includes(entry.name)) continue
    const inside = join(path, entry.name)
    if (entry.isFile()) yield inside
    else if (entry.isDirectory()) yield* filesIn(inside)
  }
}

const isTooLong = (path: string): boolean =>
  (lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_SEARCHED

function contentOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    // Access is denied, or the file was removed.
    return undefined
  }
}

function* linesOf(path: string, matches: RegExp, read: () => Buffer | undefined): Generator<Match> {
  const bytes = read()
  if (bytes === undefined || bytes.subarray(0, 8192).includes(0)) return
  let number = 0
  for (const line of bytes.toString('utf8').split('\n')) {
    number++
    if (matches.test(line)) yield { path, line: number, text: shortened(line) }
  }
}

const shortened = (line: string): string =>
  line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line

/** Looks for text, or for names, in a tree. It runs inside the sandbox: a slow expression or a hostile tree costs nobody else. */
import { type Dirent, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Match, SearchOrder } from '../wire/file-order.ts'

/** Others hold what nobody wrote by hand. */
const MOST_BYTES = 8 * 2 ** 20
const LONGEST_LINE = 400
/** What is rarely meant, and most of the work: to be searched by naming it. */
const PASSED_OVER = ['.git', 'node_modules']

export function* searchTree(order: SearchOrder): Generator<Match | { readonly more: true }> {
  const matches = order.pattern === '' ? undefined : expression(order)
  const named = nameTest(order.name)
  let found = 0
  for (const path of filesIn(order.path)) {
    if (!named(path)) continue
    for (const match of matches === undefined ? [{ path, line: 0, text: '' }] : linesOf(path, matches)) {
      if (++found > order.most) {
        yield { more: true }
        return
      }
      yield match
    }
  }
}

function expression({ pattern, ignoreCase }: SearchOrder): RegExp {
  try {
    return new RegExp(pattern, ignoreCase ? 'iu' : 'u')
  } catch {
    throw Object.assign(new Error('not a regular expression'), { code: 'EINVAL' })
  }
}

/** With `*` or `?` the whole name, or with a slash the end of the path; else any part of the path. */
function nameTest(name: string): (path: string) => boolean {
  if (!/[*?]/.test(name)) return path => path.includes(name)
  const source = name.replace(/\*\*\/|\*+|[?.+^${}()|[\]\\]/g, part =>
    part === '**/' ? '(?:.*/)?' : part.startsWith('*') ? '[^/]*' : part === '?' ? '[^/]' : `\\${part}`,
  )
  const test = new RegExp(`^${source}$`)
  const whole = new RegExp(`(^|/)${source}$`)
  return name.includes('/') ? path => whole.test(path) : path => test.test(basename(path))
}

/** Links are not followed: they could lead in a circle. */
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
    if (PASSED_OVER.includes(entry.name)) continue
    const inside = join(path, entry.name)
    if (entry.isFile()) yield inside
    else if (entry.isDirectory()) yield* filesIn(inside)
  }
}

function* linesOf(path: string, matches: RegExp): Generator<Match> {
  let text: string
  try {
    if (lstatSync(path).size > MOST_BYTES) return
    const bytes = readFileSync(path)
    if (bytes.subarray(0, 8192).includes(0)) return
    text = bytes.toString('utf8')
  } catch {
    // Denied, or gone meanwhile.
    return
  }
  let number = 0
  for (const line of text.split('\n')) {
    number++
    if (matches.test(line)) yield { path, line: number, text: line.slice(0, LONGEST_LINE) }
  }
}

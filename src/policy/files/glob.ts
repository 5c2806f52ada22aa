/**
 * Deny globs: which names below the workspace root a sandbox may not see. The grammar is small on purpose, so that
 * a glob can be expanded without walking the tree and two readers cannot disagree about what it covers.
 */
import type { Parsed } from '../source.ts'

declare const checked: unique symbol

/** A glob that passed `parseGlob`. */
export interface Glob {
  readonly [checked]: 'Glob'
  /** As the user wrote it. */
  readonly text: string
  /** One pattern per path component, without the leading `**`. */
  readonly components: readonly string[]
  /** Began with `**` + `/`: matches at every depth. Without walking the tree that can only be kept at the root. */
  readonly anyDepth: boolean
  /** Ended in `/`: matches directories (and what is in them) only. */
  readonly directoryOnly: boolean
}

const MAX_LENGTH = 1024
const MAX_NAME = 255

export function parseGlob(text: string): Parsed<Glob> {
  if (text === '') return refuse('it is empty')
  if (text.length > MAX_LENGTH) return refuse(`it is longer than ${MAX_LENGTH} characters`)
  if (!text.isWellFormed()) return refuse('it is not well-formed Unicode')
  for (const c of text) {
    const why = REFUSED.get(c) ?? (isControl(c) ? 'it holds a control character' : undefined)
    if (why !== undefined) return refuse(why)
  }
  if (text.startsWith('/')) return refuse('it is absolute; globs are relative to the workspace root')
  if (text === '~' || text.startsWith('~/')) return refuse('`~` is not expanded in a glob')

  const anyDepth = text.startsWith('**/')
  const directoryOnly = text.endsWith('/')
  const body = text.slice(anyDepth ? 3 : 0, directoryOnly ? -1 : undefined)
  const components = body.split('/')
  for (const component of components) {
    if (component === '') return refuse('it has an empty component (`//`, or nothing but a slash)')
    if (component === '.' || component === '..') return refuse(`it has a \`${component}\` component`)
    if (component.includes('**')) return refuse('`**` is allowed only once, at the start, as `**/`')
    if (component.length > MAX_NAME) return refuse(`it has a component longer than ${MAX_NAME} characters`)
  }
  if (components.every(c => /^\*+$/.test(c))) return refuse('it matches everything')
  return { ok: true, value: { text, components, anyDepth, directoryOnly } as unknown as Glob }
}

/**
 * Does the glob cover this path, or a directory above it? `path` is relative to the workspace root, already
 * canonical. Whether the path is a directory matters only for globs that end in `/`; unknown counts as yes: deny.
 */
export function globMatches(glob: Glob, path: string, { directory = true, foldCase = false } = {}): boolean {
  const names = path.split('/')
  const lastStart = glob.anyDepth ? names.length - glob.components.length : 0
  for (let start = 0; start <= lastStart; start++) {
    const end = start + glob.components.length
    if (end > names.length) return false
    if (end === names.length && glob.directoryOnly && !directory) continue
    if (glob.components.every((pattern, i) => nameMatches(pattern, names[start + i] ?? '', foldCase)))
      return true
  }
  return false
}

/** One component against one name. Two indices and one remembered star: never worse than pattern × name steps. */
export function nameMatches(pattern: string, name: string, foldCase = false): boolean {
  const p = foldCase ? pattern.toLowerCase() : pattern
  const n = foldCase ? name.toLowerCase() : name
  let i = 0
  let j = 0
  let star = -1
  let resume = 0
  while (j < n.length) {
    if (p[i] === '*') {
      star = i++
      resume = j
    } else if (i < p.length && (p[i] === '?' || p[i] === n[j])) {
      i++
      j++
    } else if (star >= 0) {
      i = star + 1
      j = ++resume
    } else return false
  }
  while (p[i] === '*') i++
  return i === p.length
}

export const isPattern = (component: string): boolean => /[*?]/.test(component)

const refuse = (why: string): Parsed<Glob> => ({ ok: false, why })

const isControl = (c: string): boolean => {
  const code = c.codePointAt(0) ?? 0
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0x2028 || code === 0x2029
}

const REFUSED = new Map([
  ['[', 'character classes (`[`) are not part of the grammar; write one entry per name'],
  [']', 'character classes (`]`) are not part of the grammar; write one entry per name'],
  ['{', 'alternatives (`{`) are not part of the grammar; write one entry per name'],
  ['}', 'alternatives (`}`) are not part of the grammar; write one entry per name'],
  ['!', 'negation (`!`) is not part of the grammar; a denial cannot be taken back by another'],
  ['\\', 'a backslash is not part of the grammar; components are separated by `/`'],
])

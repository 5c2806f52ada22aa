/**
 * Deny globs: names below the workspace root that a sandbox may not see. The grammar is small on purpose: only a leading
 * `**` needs a walk of the tree, and no two readers interpret a glob differently.
 */
import { type Parsed, refuse } from '../source.ts'

declare const checked: unique symbol

/** A glob that `parseGlob` accepted. */
export interface Glob {
  readonly [checked]: 'Glob'
  /** As the user wrote it. */
  readonly text: string
  /** One pattern per path component, without the leading `**`. */
  readonly components: readonly string[]
  /** Starts with `**` + `/`: matches at every depth. */
  readonly anyDepth: boolean
  /** Ends in `/`: matches only directories and their contents. */
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
 * Whether the glob covers this path or a directory above it. `path` is canonical and relative to the workspace root. It
 * counts as a directory for globs that end in `/`, which denies.
 */
export function globMatches(glob: Glob, path: string): boolean {
  const names = path.split('/')
  const lastStart = glob.anyDepth ? names.length - glob.components.length : 0
  for (let start = 0; start <= lastStart; start++) {
    const end = start + glob.components.length
    if (end > names.length) return false
    if (glob.components.every((pattern, i) => nameMatches(pattern, names[start + i] ?? ''))) return true
  }
  return false
}

/** Matches one component with one name. Needs at most pattern × name steps: it backtracks only to the last star. */
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

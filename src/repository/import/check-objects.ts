/**
 * pen's own check of objects that come from a sandbox, beside git's. `index-pack` accepts odd modes, which become gitlinks in
 * the index, and links named `.gitattributes`. A few nested trees can name more files than git can list.
 */
import { parseGitConfig } from '../../survey/git/config.ts'

/** In a tree, git writes no leading zero. */
const MODES = new Set(['100644', '100755', '120000', '40000', '160000'])
const DIRECTORY = '40000'
const LINK = '120000'

/** Deeper trees crash git's own commands. */
const MAX_DEPTH = 1024
const MAX_PATHS = 2_000_000
const MAX_NAME = 255

export interface Tree {
  /** As git stores it: mode, space, name, NUL, object id. */
  readonly body: Buffer
  readonly idLength: number
}

export interface CheckedTrees {
  /** Why they are refused. */
  readonly refused: string | undefined
  /** Objects that are named `.gitmodules`. */
  readonly gitmodules: readonly string[]
}

interface Weight {
  readonly paths: number
  readonly depth: number
}

/** What is kept of a tree. A tree of a million files must not take a gigabyte here. */
interface Parsed {
  readonly entries: number
  /** New trees in it. */
  readonly below: readonly string[]
}

/** `trees` are the new ones by id. A tree that the host has counts as one path. */
export function checkTrees(trees: ReadonlyMap<string, Tree>): CheckedTrees {
  const gitmodules = new Set<string>()
  const parsed = new Map<string, Parsed>()
  for (const [id, tree] of trees) {
    const below: string[] = []
    let entries = 0
    for (const entry of parseTree(tree)) {
      const refused = typeof entry === 'string' ? entry : judgeEntry(entry)
      if (typeof entry === 'string' || refused !== undefined)
        return { refused: `tree ${id}: ${refused}`, gitmodules: [] }
      if (/^\.gitmodules$/i.test(entry.name)) gitmodules.add(entry.id)
      if (entry.mode === DIRECTORY && trees.has(entry.id)) below.push(entry.id)
      entries++
    }
    parsed.set(id, { entries, below })
  }
  return { refused: weigh(parsed), gitmodules: [...gitmodules] }
}

interface Entry {
  readonly mode: string
  /** In latin1: the name is bytes. */
  readonly name: string
  readonly id: string
}

/** Text says what is wrong, and is the last. */
function* parseTree({ body, idLength }: Tree): Generator<Entry | string, void, void> {
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at)
    const nul = body.indexOf(0, at)
    const end = nul + 1 + idLength
    if (space < 0 || nul < space || end > body.length) {
      yield 'it is cut off'
      return
    }
    yield {
      mode: body.toString('latin1', at, space),
      name: body.toString('latin1', space + 1, nul),
      id: body.toString('hex', nul + 1, end),
    }
    at = end
  }
}

function judgeEntry({ mode, name }: Entry): string | undefined {
  if (!MODES.has(mode)) return `an entry has the mode ${mode.slice(0, 20).replace(/[^0-7]/g, '?')}`
  if (name === '' || name === '.' || name === '..' || name.includes('/') || /^\.git(?:~\d+)?$/i.test(name))
    return 'an entry has a name that leads out of the tree'
  if (name.length > MAX_NAME) return `an entry has a name of ${name.length} bytes`
  const special = /^\.git(?:modules|attributes|ignore)$/i.exec(name)?.[0].toLowerCase()
  return special !== undefined && mode === LINK ? `${special} is a link` : undefined
}

/** Without recursion: a sandbox may nest thirty thousand trees. */
function weigh(trees: ReadonlyMap<string, Parsed>): string | undefined {
  const weights = new Map<string, Weight>()
  for (const top of trees.keys()) {
    const stack = [top]
    while (stack.length > 0) {
      const id = stack.at(-1) ?? ''
      const { entries, below } = trees.get(id) ?? { entries: 0, below: [] }
      // A tree cannot contain itself: its id is the hash of its content.
      const unknown = weights.has(id) ? [] : below.filter(child => !weights.has(child))
      for (const child of unknown) stack.push(child)
      if (unknown.length > 0) continue
      stack.pop()
      let [paths, depth] = [entries, 1]
      for (const child of below) {
        const inner = weights.get(child) ?? { paths: 0, depth: 0 }
        paths += inner.paths
        depth = Math.max(depth, 1 + inner.depth)
      }
      if (depth > MAX_DEPTH) return `tree ${id} is more than ${MAX_DEPTH} directories deep`
      if (paths > MAX_PATHS) return `tree ${id} has more than ${MAX_PATHS} paths`
      weights.set(id, { paths, depth })
    }
  }
  return undefined
}

/** A transport helper: git runs `git-remote-ext` for `ext::`, which runs any program. */
const HELPER = /^\s*[\w+.-]*::/

/** git accepts a setting behind its header, continued lines and quotes, so the text is parsed. */
export function checkGitmodules(text: string): string | undefined {
  const settings = parseGitConfig(text)
  if (settings === undefined) return ".gitmodules is not in the form of git's settings"
  return settings.some(({ value }) => HELPER.test(value))
    ? 'a URL in .gitmodules names a helper program'
    : undefined
}

export interface BatchObject {
  readonly id: string
  readonly body: Buffer
}

/** The answers of `git cat-file --batch`: a line with id, type and size, the object, and a newline. */
export function parseBatch(bytes: Buffer): readonly BatchObject[] {
  const objects: BatchObject[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0x0a, at)
    const [id = '', , size = ''] = bytes.toString('latin1', at, end < 0 ? at : end).split(' ')
    const length = Number(size)
    if (end < 0 || !/^\d+$/.test(size) || end + 1 + length > bytes.length)
      throw new Error('git cat-file answered in another form')
    objects.push({ id, body: bytes.subarray(end + 1, end + 1 + length) })
    at = end + 2 + length
  }
  return objects
}

/** Judges the names of new refs from a sandbox. git checks the form of a name itself; these would mislead git or a reader. */

/** Letters of any language, and what people write in branch names. No shell, terminal or glob character. */
const PLAIN = /^[\p{L}\p{N}._/+@#=-]+$/u
/** Words that git reads as something else than a branch or a tag: a commit by its id, or a file of its own. */
const SPECIAL = /^(?:@|[A-Z_]*HEAD|[0-9a-f]{7,64}|.*-g[0-9a-f]{4,})$/
const PREFIXED = /^(?:refs|heads|tags|remotes|notes|pen|stash)(?:\/|$)/
const MAX_PART = 200

/** Why a new ref from a sandbox is refused; undefined when it is fine. */
export function judgeName(name: string, there: ReadonlyMap<string, string>): string | undefined {
  const short = name.replace(/^refs\/[^/]+\//, '')
  const parts = short.split('/')
  if (parts.some(part => part.startsWith('-'))) return 'a part of its name starts with "-"'
  if (!PLAIN.test(short) || short !== short.normalize('NFC')) return 'its name has unusual characters'
  if (parts.some(part => Buffer.byteLength(part) > MAX_PART)) return 'its name is too long'
  if (SPECIAL.test(short) || PREFIXED.test(short)) return 'git gives its name another meaning'
  const others = ['refs/heads/', 'refs/tags/', 'refs/remotes/', 'refs/'].map(prefix => `${prefix}${short}`)
  if (others.some(other => other !== name && there.has(other)))
    return 'it would shadow another ref of the same short name'
  // `origin` alone means `refs/remotes/origin/HEAD`.
  if (foldedNames(there).has(`refs/remotes/${short}/`.toLowerCase()))
    return 'it would shadow a remote of the same name'
  return foldedNames(there).has(name.toLowerCase()) ? 'it differs from another ref in case alone' : undefined
}

const folded = new WeakMap<ReadonlyMap<string, string>, Set<string>>()

export function takeName(names: Map<string, string>, name: string, id: string): void {
  names.set(name, id)
  folded.get(names)?.add(name.toLowerCase())
}

/** The names in lower case, and the remotes. Collected once: a sandbox may bring thousands of new names. */
function foldedNames(refs: ReadonlyMap<string, string>): ReadonlySet<string> {
  const known = folded.get(refs)
  if (known !== undefined) return known
  const names = new Set(
    [...refs.keys()].flatMap(name => {
      const remote = /^refs\/remotes\/[^/]+\//.exec(name)?.[0]
      return [name.toLowerCase(), ...(remote === undefined ? [] : [remote.toLowerCase()])]
    }),
  )
  folded.set(refs, names)
  return names
}

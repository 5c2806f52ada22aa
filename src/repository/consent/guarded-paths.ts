/**
 * Paths that a commit from a sandbox may not change on the host without consent: those that it cannot write in the working
 * tree, and `.gitmodules`. The user's next checkout would write them.
 */
import { lstatSync } from 'node:fs'
import { readRegularFile } from '../../base/regular-file.ts'
import { parentsOf } from '../sync/changed-paths.ts'
import type { SyncAllOptions } from '../sync-all.ts'

/** An entry is a mode and an id, as git writes them. It is empty where there is none. */
export interface Guard {
  /** Whether a commit that changes this entry needs consent. A removal is a change. */
  isPlace(path: string, before: string, after: string): boolean
  /** Whether the user's own file is the same. */
  isOwn(path: string, entry: string): boolean
}

const LINK = '120000'
const MAX_BYTES = 16 * 1024 * 1024

/** For a repository whose working tree is unknown. */
export const ALL: Guard = { isPlace: () => true, isOwn: () => false }

/**
 * All paths of `within` are absolute, and `heldPaths` are the protected ones that mounts hold. The answers take a path below
 * `top`.
 */
export function guardedPaths(
  top: string,
  within: Pick<SyncAllOptions, 'protectedPaths' | 'heldPaths' | 'mayWrite'>,
): Guard {
  const below = within.protectedPaths.flatMap(path =>
    path.startsWith(`${top}/`) ? [path.slice(top.length + 1)] : [],
  )
  const guarded = new Set(['.gitmodules', ...below].map(folded))
  const mounted = new Set(within.heldPaths)
  const isIn = (set: ReadonlySet<string>, path: string, prefix = ''): boolean =>
    [path, ...parentsOf(path)].some(part => set.has(`${prefix}${part}`))
  // `.claude` as a link to a directory of the sandbox's brings `.claude/settings.json`.
  const above = new Set([...guarded].flatMap(parentsOf))
  // Nearly all paths are elsewhere, and there may be millions.
  const first = new Set([...guarded].map(topOf))
  const isLink = (entry: string): boolean => entry.startsWith(LINK)
  return {
    isPlace: (path, before, after) => {
      const name = folded(path)
      // Denied, or without a write grant.
      if (!within.mayWrite(`${top}/${path}`)) return true
      if (!first.has(topOf(name))) return false
      return isIn(guarded, name) || ((isLink(before) || isLink(after)) && above.has(name))
    },
    // What a mount holds is the user's own: the sandbox could not write it. In other places, a file of the sandbox's may lie
    // for a moment, until it is moved away.
    isOwn: (path, entry) => isIn(mounted, path, `${top}/`) && isSame(`${top}/${path}`, entry),
  }
}

/**
 * Some file systems do not tell `.VSCODE` from `.vscode`. Linux takes `ſ` for an `s` there, and leaves out characters that
 * are not shown. More names than there are the same here: then a commit waits that need not.
 */
export const folded = (path: string): string =>
  /[^ -~]/.test(path)
    ? path
        .normalize('NFKD')
        .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
        .toUpperCase()
        .toLowerCase()
    : path.toLowerCase()

const topOf = (path: string): string => {
  const slash = path.indexOf('/')
  return slash < 0 ? path : path.slice(0, slash)
}

/** The same content as a link, or as a program, is another thing. */
function isSame(file: string, entry: string): boolean {
  const [mode, blob = ''] = entry.split(' ')
  try {
    const isProgram = mode === '100755' && (lstatSync(file).mode & 0o100) !== 0
    const content =
      mode === '100644' || isProgram ? readRegularFile(file, { maxBytes: MAX_BYTES }) : undefined
    if (content === undefined) return false
    const hash = new Bun.CryptoHasher(blob.length === 64 ? 'sha256' : 'sha1')
    return hash.update(`blob ${content.length}\0`).update(content).digest('hex') === blob
  } catch {
    return false // a link or a special file: not the content of the commit
  }
}

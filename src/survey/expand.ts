/**
 * Finds the existing paths that a deny glob covers. Only directories that the glob names are listed: for globs that begin
 * with `**`, see search-tree.ts. What pen cannot see completely stops the run.
 */
import { closeSync } from 'node:fs'
import { openDirectory } from '../base/beneath/beneath.ts'
import { directoryEntries } from '../base/beneath/directory-entries.ts'
import { absent, lookAt } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { type Glob, isPattern, nameMatches } from '../policy/files/glob.ts'
import { linkTarget, linkText, MAX_LINKS } from './links.ts'
import type { ListingCache } from './listing-cache.ts'
import { NO_TEXT } from './non-utf8-directories.ts'

export interface Covered {
  readonly path: string
  /** Nothing can be mounted on a link. Its target inside the workspace is listed too. */
  readonly type: 'file' | 'dir' | 'link'
}

export function expandGlob(glob: Glob, workspace: string, cache?: ListingCache): readonly Covered[] {
  let paths = [workspace]
  for (let i = 0; i < glob.components.length; i++) {
    const component = glob.components[i] ?? ''
    const next: string[] = []
    for (const dir of paths) {
      if (i > 0 && !lookAt(dir)?.isDirectory()) continue
      for (const name of namesIn(dir, component, cache)) next.push(`${dir}/${name}`)
    }
    paths = next
  }
  return coveredAt(paths, glob, workspace)
}

/** Those of the paths that exist and are denied, and what links among them lead to. */
export function coveredAt(paths: readonly string[], glob: Glob, workspace: string): readonly Covered[] {
  const covered = new Map<string, Covered>()
  for (const path of paths) cover(path, workspace, glob.directoryOnly, covered, 0)
  return [...covered.values()]
}

function namesIn(dir: string, component: string, cache: ListingCache | undefined): readonly string[] {
  if (!isPattern(component)) return [component]
  const names = cache === undefined ? matchingNames(dir, component) : cache.matching(dir, component)
  const nameless = names.find(name => isNonUtf8(dir, name))
  if (nameless === undefined) return names
  throw nonUtf8Denied(`${dir}/${nameless}`)
}

export const nonUtf8Denied = (path: string): PenError =>
  new PenError('PATH_REFUSED', {
    what: 'what is denied has a name that is no text (UTF-8), by which nothing can be covered',
    at: printable(path, 1024),
    hint: 'rename it, or move it out of the project',
  })

/** A non-UTF-8 name in a listing cannot be opened by its text. */
export const isNonUtf8 = (dir: string, name: string): boolean =>
  name.includes(NO_TEXT) && lookAt(`${dir}/${name}`) === undefined

export function matchingNames(dir: string, component: string): readonly string[] {
  const folded: string[] = []
  const fd = openDirectory(dir)
  if (fd === undefined) return folded
  try {
    for (const { name: bytes } of directoryEntries(fd)) {
      const name = bytes.toString()
      if (nameMatches(component, name, true)) folded.push(name)
    }
  } catch (error) {
    return absent(error, dir) ?? []
  } finally {
    closeSync(fd)
  }
  const exact = folded.filter(name => nameMatches(component, name))
  if (folded.length === exact.length || !foldsCase(dir, folded)) return exact
  return folded
}

/** Whether another spelling of an existing name opens the same file. */
export function foldsCase(dir: string, names: readonly string[]): boolean {
  const name = names.find(n => n.toLowerCase() !== n.toUpperCase())
  if (name === undefined) return false
  const other = name === name.toLowerCase() ? name.toUpperCase() : name.toLowerCase()
  const [a, b] = [lookAt(`${dir}/${name}`), lookAt(`${dir}/${other}`)]
  return a !== undefined && a.ino === b?.ino && a.dev === b.dev && !names.includes(other)
}

function cover(
  path: string,
  workspace: string,
  directoryOnly: boolean,
  covered: Map<string, Covered>,
  links: number,
): void {
  const stats = lookAt(path)
  if (stats === undefined || covered.has(path)) return
  if (stats.isSymbolicLink()) {
    covered.set(path, { path, type: 'link' })
    const text = linkText(path)
    const target = text === undefined ? '' : linkTarget(path, text)
    if (links < MAX_LINKS && target.startsWith(`${workspace}/`))
      cover(target, workspace, directoryOnly, covered, links + 1)
    return
  }
  const type = stats.isDirectory() ? 'dir' : 'file'
  if (type === 'dir' || !directoryOnly) covered.set(path, { path, type })
}

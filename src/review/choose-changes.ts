/** Which changes an accept applies: all, or those that the user named. */

import { PenError } from '../base/error.ts'
import { resolve } from '../base/posix-path.ts'
import { isWithin } from '../policy/files/path.ts'
import { type Change, isBelow } from './change.ts'
import type { Guard } from './mark-changes.ts'

export interface Choice {
  readonly chosen: readonly Change[]
  readonly left: readonly Left[]
}

export interface Left {
  readonly path: string
  readonly why: string
}

/** Paths as the user typed them, relative to `cwd`, as paths of changes. None when the project itself is named. */
export function namedPaths(words: readonly string[], cwd: string, workspace: string): readonly string[] {
  const named = words.map(word => {
    const path = resolve(cwd, word)
    if (!isWithin(path, workspace))
      throw new PenError('PATH_REFUSED', {
        what: 'this path is not in the project',
        at: word,
        hint: `name a path below ${workspace}`,
      })
    const relative = path.slice(workspace.length + 1)
    return relative === '' ? '.' : Buffer.from(relative).toString('latin1')
  })
  return named.includes('.') ? [] : named
}

/** Those that the user may see: below a named path, or all. */
export const changesBelow = (changes: readonly Change[], named: readonly string[]): readonly Change[] =>
  named.length === 0 ? changes : changes.filter(({ path }) => named.some(above => isBelow(path, above)))

/** A protected change needs a named path that is protected itself. `overwrite` takes the sandbox's version of a conflict. */
export function chooseChanges(
  changes: readonly Change[],
  named: readonly string[],
  guard: Guard,
  overwrite: boolean,
): Choice {
  const held = new Set(changes.flatMap(change => (change.protected === undefined ? [] : [change.path])))
  const strong = named.filter(path => held.has(path) || guard.protects(path))
  const left: Left[] = []
  const chosen = changesBelow(changes, named).filter(change => {
    const { path, refused, conflict } = change
    const isHeld = change.protected !== undefined && !strong.some(above => isBelow(path, above))
    const why = refused ?? (isHeld ? change.protected : overwrite ? undefined : conflict)
    if (why !== undefined) left.push({ path, why })
    return why === undefined
  })
  return { chosen: withDirectories(chosen, changes), left }
}

/**
 * A new file needs its new directories. A directory that replaces a file of the project's is not one of them: the user agrees to that by
 * itself.
 */
export function withDirectories(chosen: readonly Change[], changes: readonly Change[]): readonly Change[] {
  const have = new Set(chosen.map(({ path }) => path))
  const needed = new Set<string>()
  for (const { path, after } of chosen)
    if (after !== undefined)
      for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1))
        if (!have.has(path.slice(0, end))) needed.add(path.slice(0, end))
  if (needed.size === 0) return chosen
  const directories = changes.filter(
    ({ path, kind, after, refused }) =>
      needed.has(path) && after?.type === 'directory' && kind === 'added' && refused === undefined,
  )
  return [...chosen, ...directories].sort((a, b) => (a.path < b.path ? -1 : 1))
}

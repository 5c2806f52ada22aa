/**
 * Takes a repository that was made in a sandbox out of the project, into pen's state. It may be the user's own: a process of
 * the sandbox and a command of the user cannot be distinguished. So nothing of it is deleted, and nothing of it is obeyed.
 */
import { closeSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { at, CHANGE, openForRemoval, withAccess } from '../../base/beneath/beneath.ts'
import { lookAt } from '../../base/beneath/look-at.ts'
import { openCanonical } from '../../base/beneath/open-beneath.ts'
import { removeInSteps, removeTree } from '../../base/beneath/remove-tree.ts'
import { type Budget, copyTree, disarmTree } from '../../base/beneath/tree.ts'
import { errnoOf } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'

/** On another file system it is copied, up to this. More stays in the project, under a name that git does not read. */
const MAX_COPY = { entries: 1_000_000, bytes: 4 * 1024 ** 3 }

/** Where it is in pen's state: `dir` in this directory. `run` made it. */
export const takenTo = (stateDir: string, run: string): string => `${stateDir}/git/${run}`

/** No process of the sandbox may run. Returns a line for the user when the repository stays in the project. */
export function takeRepository(workspace: string, stateDir: string, run: string): string | undefined {
  const entry = takenTo(stateDir, run)
  const top = openCanonical(workspace)
  try {
    return withAccess(top, CHANGE, () => {
      if (lookAt(at(top, '.git'))?.isDirectory() !== true) return undefined
      return take(top, entry, `${stateDir}/quarantine/${run}`)
    })
  } finally {
    closeSync(top)
  }
}

function take(top: number, entry: string, quarantine: string): string | undefined {
  const why = attempt(() => {
    mkdirSync(entry, { recursive: true, mode: 0o700 })
    writeFileSync(markOf(entry), quarantine)
    move(top, '.git', `${entry}/dir`)
  })
  if (why === undefined) {
    unlock(entry)
    return undefined
  }
  // git on the host must not find it. The name cannot be guessed, so nothing is in its way.
  const aside = `.git.made-${crypto.randomUUID()}`
  const stuck = attempt(() => move(top, '.git', at(top, aside)))
  if (stuck !== undefined)
    return `git: .git was made in the sandbox and could not be moved away (${stuck}); fix: remove it before you use git`
  const left = why === 'EXDEV' ? copy(top, aside, entry) : why
  if (left === undefined) return undefined
  return `git: .git was made in the sandbox and could not be taken over (${left}): it is ${aside} now; fix: look at its config and hooks before you rename it`
}

/** A directory moves to another parent only when pen may write it. */
function move(top: number, name: string, to: string | Buffer): void {
  const fd = openForRemoval(at(top, name))
  if (fd !== undefined) closeSync(fd)
  renameSync(at(top, name), to)
}

/** Returns the errno. */
function attempt(act: () => void): string | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined) throw error
    return errno
  }
}

/** Returns why that failed. */
function copy(top: number, aside: string, entry: string): string | undefined {
  const budget: Budget = { ...MAX_COPY }
  if (result(copyTree(top, aside, `${entry}/dir`, budget))) {
    for (const _ of removeInSteps(top, aside));
    return undefined
  }
  removeTree(`${entry}/dir`)
  return budget.isFull === true ? 'ENOSPC' : 'EXDEV, and it could not be copied'
}

/** The sandbox may have locked any part of it: pen's git could not read that. */
function unlock(entry: string): void {
  const fd = openCanonical(entry)
  try {
    result(disarmTree(fd, 'dir', { ...MAX_COPY, bytes: Number.POSITIVE_INFINITY }))
  } finally {
    closeSync(fd)
  }
}

function result<T>(work: Generator<void, T, void>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** Its content is the place in the quarantine. */
const markOf = (entry: string): string => `${entry}/adopted`

/**
 * Moves an adopted repository to the quarantine when all that crosses is on the host. Its settings and hooks lie beside it: git
 * would obey them in it. Returns lines for the user. Other directories of a sandbox are copies, and stay where they are.
 */
export function keepAdopted(entry: string): readonly string[] {
  const to = existsSync(markOf(entry)) ? readFileSync(markOf(entry), 'utf8') : undefined
  if (to === undefined) return []
  mkdirSync(to, { recursive: true, mode: 0o700 })
  for (const name of ['config', 'hooks'])
    if (existsSync(`${entry}/dir/${name}`)) renameSync(`${entry}/dir/${name}`, `${to}/git-${name}`)
  renameSync(`${entry}/dir`, `${to}/git`)
  return [
    `git: your git made the repository again, with its branches, tags and notes; all else of the one that was made during the run (other refs, logs, settings) is kept at ${printable(to, 500)}`,
  ]
}

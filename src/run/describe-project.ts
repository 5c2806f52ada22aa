/** What a run left in the project, as lines for the user: repositories, and changed files that run later. */
import { closeSync, fstatSync, readdirSync } from 'node:fs'
import { LIST, openDirectory, withAccess } from '../base/beneath/beneath.ts'
import { absent, lookAt, Unseen } from '../base/beneath/look-at.ts'
import { printable, shellWord } from '../base/printable.ts'
import { RUN_LATER } from '../policy/files/protected-places.ts'
import {
  describeRepository,
  findRepositories,
  searchBudget,
  searchUnfinished,
} from '../protect/git/planted-repositories.ts'
import type { Prepared } from './prepare.ts'

/** File system timestamps are coarser than our clock. */
const SLACK_MS = 20
/** In a directory with more entries, changed files are not named. */
const MAX_ENTRIES = 10_000

const MAX_TOLD = 10

type Patience = Parameters<typeof searchBudget>[1]

/** It also works when the sandbox made the project unreadable with chmod. `began` is the start of the run in milliseconds. */
export function describeProject({ plan }: Prepared, began: number, patience: Patience): string[] {
  const { workspace } = plan
  const top = openDirectory(workspace)
  if (top === undefined) return []
  try {
    const isLocked = (fstatSync(top).mode & 0o700) === 0
    const lines = withAccess(top, LIST, () => [
      ...describeRepositories(workspace, began, patience),
      ...describeRunLater(changedSince(workspace, RUN_LATER, began)),
    ])
    const locked = `the top of the project is locked: chmod u+rwx ${shellWord(workspace) ?? '.'}`
    return isLocked ? [...lines, locked] : lines
  } finally {
    closeSync(top)
  }
}

function describeRepositories(workspace: string, began: number, patience: Patience): string[] {
  const budget = searchBudget(Date.now() - began, patience)
  const { found, complete, unlisted } = findRepositories(workspace, { ...budget, since: began })
  const lines = found.flatMap(repository => describeRepository(repository) ?? [])
  if (unlisted > 0) lines.push(`… and ${unlisted} more repositories were made during the run`)
  if (!complete) lines.push(searchUnfinished(began))
  return lines
}

/** Files that the host runs on a build, test or push. Reported, not prevented. */
export function describeRunLater(changed: readonly string[]): string[] {
  if (changed.length === 0) return []
  const shown = changed.slice(0, MAX_TOLD).map(name => printable(name, 120))
  const more = changed.length > MAX_TOLD ? ` and ${changed.length - MAX_TOLD} more` : ''
  return [
    `changed during the run, and run by your machine when you build, test or push: ${shown.join(', ')}${more}; read the difference first`,
  ]
}

/**
 * `names` are relative to the workspace. Compares change times, which a sandbox cannot set, also of the direct entries of a
 * directory. A file that pen cannot look at counts as changed.
 */
export function changedSince(workspace: string, names: readonly string[], since: number): readonly string[] {
  const unseen: string[] = []
  const changed = names.flatMap(name => {
    try {
      return changedAt(workspace, name, since)
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
      unseen.push(name)
      return []
    }
  })
  const [first, ...more] = unseen
  if (first === undefined) return changed
  return [...changed, `${first}${more.length === 0 ? '' : ` and ${more.length} others`} (pen could not look)`]
}

function changedAt(workspace: string, name: string, since: number): readonly string[] {
  const path = `${workspace}/${name}`
  const stats = lookAt(path)
  if (stats === undefined) return []
  if (!stats.isDirectory()) return isNew(path, since) ? [name] : []
  const found = entries(path)
  if (found.length > MAX_ENTRIES) return [`${name}/ (${found.length} files: too many to look at)`]
  return found.map(entry => `${name}/${entry}`).filter(entry => isNew(`${workspace}/${entry}`, since))
}

function isNew(path: string, since: number): boolean {
  const stats = lookAt(path)
  return stats !== undefined && Number(stats.ctimeNs / 1_000_000n) >= since - SLACK_MS
}

function entries(dir: string): readonly string[] {
  try {
    return readdirSync(dir)
  } catch (error) {
    return absent(error, dir) ?? []
  }
}

/** What a run left in the project, as lines for the user: repositories, and changed files that run later. */
import { closeSync, fstatSync } from 'node:fs'
import { LIST, openDirectory, withAccess } from '../base/beneath/beneath.ts'
import { shellWord } from '../base/printable.ts'
import { RUN_LATER } from '../policy/files/protected-places.ts'
import {
  describeRepository,
  findRepositories,
  searchBudget,
  searchUnfinished,
} from '../protect/git/planted-repositories.ts'
import { changedSince, describeRunLater } from '../protect/run-later.ts'
import type { Prepared } from './prepare.ts'

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

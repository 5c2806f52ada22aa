/**
 * Worktrees that git made during a run at a place of the sandbox's own, such as `git worktree add ../x` in a project below /tmp. Nothing
 * stays there, so the user hears of them at the end. Elsewhere the directory above the project is read-only inside, and git says so at once.
 */
import { lookAt, Unseen } from '../../base/beneath/look-at.ts'
import { dirname } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { readPointer } from '../../survey/git/directory.ts'
import { listDirectory } from '../../survey/git/submodules.ts'

/** Clocks of file systems tick more coarsely than ours. */
const SLACK_MS = 20
const MAX_TOLD = 10

/** `gitDirs` are those that the sandbox could write. One line for a person; none when there are none. */
export function describeLostWorktrees(gitDirs: readonly string[], since: number): string[] {
  const lost = gitDirs.flatMap(dir =>
    listDirectory(`${dir}/worktrees`).flatMap(name => lostAt(`${dir}/worktrees/${name}/gitdir`, since)),
  )
  if (lost.length === 0) return []
  const shown = lost.slice(0, MAX_TOLD).map(path => printable(path, 1024))
  const more = lost.length > MAX_TOLD ? ` and ${lost.length - MAX_TOLD} more` : ''
  return [
    `git worktrees were made outside of the project, where nothing of a sandbox stays: ${shown.join(', ')}${more}; their files are gone, and what was committed is on its branch; make them below the project, and remove the records with: git worktree prune`,
  ]
}

function lostAt(record: string, since: number): string[] {
  try {
    const stats = lookAt(record)
    if (stats === undefined || Number(stats.ctimeNs / 1_000_000n) < since - SLACK_MS) return []
    const pointer = readPointer(record)
    return pointer === undefined || lookAt(pointer) !== undefined ? [] : [dirname(pointer)]
  } catch (error) {
    // What the sandbox locked is told of elsewhere.
    if (error instanceof Unseen) return []
    throw error
  }
}

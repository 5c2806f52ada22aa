/**
 * Worktrees that git made during a run in a directory that does not outlive the sandbox, such as `git worktree add ../x` in
 * a project below /tmp. The user is warned at the end. Elsewhere, the parent directory is read-only and git fails at once.
 */
import { lookAt, Unseen } from '../../base/beneath/look-at.ts'
import { dirname } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { readPointer } from '../../survey/git/directory.ts'
import { listDirectory } from '../../survey/git/submodules.ts'

/** File system timestamps are coarser than our clock. */
const SLACK_MS = 20
const MAX_TOLD = 10

/** `gitDirs` are writable for the sandbox. Returns one line for the user, or none. */
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
    // A locked directory is reported elsewhere.
    if (error instanceof Unseen) return []
    throw error
  }
}

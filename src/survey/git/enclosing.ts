/**
 * The repositories that the project is a part of. A plain `git status` there enters their submodules in the project, and their
 * settings may name hooks and programs in it. The sandbox sees nothing of them.
 */
import { accessSync, constants } from 'node:fs'
import { dirname } from '../../base/posix-path.ts'
import { gitDirAt, readPointer } from './directory.ts'

export interface Enclosing {
  /** With settings and submodules. */
  readonly commonDir: string
  /** With the index. Another directory for a linked worktree. */
  readonly dir: string
  /** Of the working tree. */
  readonly top: string
}

/** The nearest first. One that this user cannot enter is none for this user's git either. */
export function enclosingRepositories(workspace: string): readonly Enclosing[] {
  const found: Enclosing[] = []
  for (let top = workspace; top !== '/'; ) {
    top = dirname(top)
    const dir = gitDirAt(top === '/' ? '' : top)
    if (dir !== undefined && mayEnter(dir))
      found.push({ commonDir: readPointer(`${dir}/commondir`) ?? dir, dir, top })
  }
  return found
}

function mayEnter(dir: string): boolean {
  try {
    accessSync(dir, constants.R_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

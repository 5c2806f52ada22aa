/** The git directories below `.git/modules`. Names have slashes (`libs/a`) and submodules have submodules: a small, bounded search. */
import { readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import type { GitSetting } from './git-config.ts'
import { readGitConfig } from './git-dir.ts'
import { lstatOrUndefined } from './places.ts'

export interface Submodule {
  readonly gitDir: string
  readonly settings: readonly GitSetting[]
  /** The `.git` file of its working tree, as its configuration says. */
  readonly pointer: string | undefined
}

const MAX_MODULES = 200
const MAX_VISITS = 600
const MAX_DEPTH = 8

export function findSubmodules(modules: string): readonly Submodule[] {
  const found: Submodule[] = []
  const queue = [{ dir: modules, depth: 0 }]
  let visits = 0
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    if (found.length >= MAX_MODULES || visits++ >= MAX_VISITS) break
    for (const name of listDirectory(next.dir)) {
      const dir = `${next.dir}/${name}`
      if (!lstatOrUndefined(dir)?.isDirectory()) continue
      const isGitDir = lstatOrUndefined(`${dir}/HEAD`) !== undefined
      if (isGitDir) found.push(describe(dir))
      if (next.depth < MAX_DEPTH)
        queue.push({ dir: isGitDir ? `${dir}/modules` : dir, depth: next.depth + 1 })
    }
  }
  return found
}

/** Nothing, when it is no directory: a link in its place is not followed. */
export function listDirectory(dir: string): readonly string[] {
  if (!lstatOrUndefined(dir)?.isDirectory()) return []
  try {
    return readdirSync(dir)
  } catch {
    return []
  }
}

function describe(gitDir: string): Submodule {
  const settings = readGitConfig(`${gitDir}/config`) ?? []
  const worktree = settings.findLast(s => s.key === 'core.worktree')?.value
  return {
    gitDir,
    settings,
    pointer: worktree === undefined ? undefined : `${resolve(gitDir, worktree)}/.git`,
  }
}

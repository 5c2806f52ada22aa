/** Finds the git directories below `.git/modules`. Names have slashes (`libs/a`) and submodules nest, so this is a bounded search. */
import { readdirSync } from 'node:fs'
import { absent, lookAt } from '../../base/beneath/look-at.ts'
import { NO_TEXT } from '../non-utf8-directories.ts'
import { workTreeOf } from './directory.ts'

interface Submodule {
  readonly gitDir: string
  /** The `.git` file of its working tree, as its configuration says. */
  readonly pointer: string | undefined
}

const MAX_MODULES = 200
const MAX_VISITS = 600
const MAX_DEPTH = 8

export interface Submodules {
  readonly found: readonly Submodule[]
  /** False when there may be more: behind a link, or too many. */
  readonly complete: boolean
}

export function findSubmodules(modules: string): Submodules {
  const found: Submodule[] = []
  let complete = lookAt(modules)?.isSymbolicLink() !== true
  const queue = [{ dir: modules, depth: 0 }]
  let visits = 0
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const names = listDirectory(next.dir)
    if (found.length >= MAX_MODULES || visits++ >= MAX_VISITS || names.length > MAX_VISITS) {
      complete = false
      break
    }
    for (const name of names) {
      const dir = `${next.dir}/${name}`
      const stats = lookAt(dir)
      if (stats === undefined && name.includes(NO_TEXT)) complete = false
      if (stats?.isSymbolicLink()) complete = false
      if (!stats?.isDirectory()) continue
      const isGitDir = lookAt(`${dir}/HEAD`) !== undefined && lookAt(`${dir}/objects`)?.isDirectory() === true
      if (isGitDir) found.push(describe(dir))
      if (next.depth < MAX_DEPTH)
        queue.push({ dir: isGitDir ? `${dir}/modules` : dir, depth: next.depth + 1 })
      else complete = false
    }
  }
  return { found, complete }
}

/** Empty when it is not a directory. A link is not followed. */
export function listDirectory(dir: string): readonly string[] {
  if (!lookAt(dir)?.isDirectory()) return []
  try {
    return readdirSync(dir)
  } catch (error) {
    return absent(error, dir) ?? []
  }
}

function describe(gitDir: string): Submodule {
  const tree = workTreeOf(gitDir)
  return { gitDir, pointer: tree === undefined ? undefined : `${tree}/.git` }
}

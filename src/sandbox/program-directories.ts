/** Where the programs of the shown system are: a bounded search for directories that are called `bin` and the like. */
import { type Dirent, lstatSync, readdirSync } from 'node:fs'
import { basename } from 'node:path'
import type { SystemEntry } from '../plan/facts.ts'
import { PROGRAM_DIRECTORY_NAMES } from '../plan/system-view.ts'

/** How deep below a root such directories are: `/usr/lib/jvm/java-21/bin`, `~/.nvm/versions/node/v22/bin`. */
const DEPTH = 4
/** Data, headers, and packages that have a `bin` each: scripts, which run only with their interpreter. */
const PASSED_OVER =
  /^(share|include|src|doc|node_modules|(site|dist)-packages|firmware|modules|locale|python[\d.]*|.*-linux-.*)$/
/** More directories side by side than versions of one thing: a collection, not a toolchain. */
const MOST_SIBLINGS = 400
/** Every program of these stores has its own directory: too many to cover one by one. */
const STORES = ['/nix/store', '/gnu/store']
const MOST_LOOKED_AT = 2_000

export function findProgramDirectories(system: readonly SystemEntry[]): string[] {
  const out = new Set<string>()
  const budget = { left: MOST_LOOKED_AT }
  for (const entry of system) {
    if (entry.kind !== 'tree' || entry.path.startsWith('/etc/') || STORES.includes(entry.path)) continue
    look(entry.path, DEPTH, budget, out)
  }
  return [...out]
}

/** Breadth first, so that what is nearest to the root is found before the budget is used up. */
function look(root: string, depth: number, budget: { left: number }, out: Set<string>): void {
  if (PROGRAM_DIRECTORY_NAMES.includes(basename(root))) out.add(root)
  let level = out.has(root) ? [] : [root]
  for (let down = 1; down <= depth && level.length > 0; down++) {
    const next: string[] = []
    for (const directory of level) {
      if (budget.left-- <= 0) return
      if (down === depth) {
        for (const name of PROGRAM_DIRECTORY_NAMES)
          if (isDirectory(`${directory}/${name}`)) out.add(`${directory}/${name}`)
        continue
      }
      const children = list(directory).filter(child => child.isDirectory() && !PASSED_OVER.test(child.name))
      for (const { name } of children)
        if (PROGRAM_DIRECTORY_NAMES.includes(name)) out.add(`${directory}/${name}`)
        else if (children.length <= MOST_SIBLINGS) next.push(`${directory}/${name}`)
    }
    level = next
  }
}

const isDirectory = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

function list(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}

export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

/** Finds the directories of programs in the shown system: a bounded search for directories with names such as `bin`. */
import { basename } from '../../base/posix-path.ts'
import type { SystemEntry } from '../../plan/facts.ts'
import { PROGRAM_DIRECTORY_NAMES } from '../../plan/system-view.ts'
import type { ProgramFiles } from './files.ts'

/** How deep below a root such directories are: `/usr/lib/jvm/java-21/bin`, `~/.nvm/versions/node/v22/bin`. */
const DEPTH = 4
/** Data, headers, and packages with a `bin` each. Those hold scripts, which run only with their interpreter. */
const SKIPPED_DIRECTORIES =
  /^(share|include|src|doc|node_modules|(site|dist)-packages|firmware|modules|locale|python[\d.]*|.*-linux-.*)$/
/** In these stores every program has its own directory, so there are too many to cover one by one. */
const STORES = ['/nix/store', '/gnu/store']

/** How many directories the search may visit. */
export interface Budget {
  left: number
}

export function findProgramDirectories(
  files: ProgramFiles,
  system: readonly SystemEntry[],
  budget: Budget,
): string[] {
  const out = new Set<string>()
  for (const entry of system) {
    if (entry.kind !== 'tree' || entry.path.startsWith('/etc/') || STORES.includes(entry.path)) continue
    look(files, entry.path, budget, out)
  }
  return [...out]
}

/** Breadth first, so that directories near the root are found before the budget is used up. */
function look(files: ProgramFiles, root: string, budget: Budget, out: Set<string>): void {
  if (isProgramDirectory(root)) out.add(root)
  let level = out.has(root) ? [] : [root]
  for (let down = 1; down <= DEPTH && level.length > 0; down++) {
    const next: string[] = []
    for (const directory of level) {
      if (budget.left-- <= 0) return
      if (down === DEPTH) {
        for (const name of PROGRAM_DIRECTORY_NAMES)
          if (files.look(`${directory}/${name}`)?.kind === 'directory') out.add(`${directory}/${name}`)
        continue
      }
      const children = files
        .list(directory)
        .filter(child => child.kind === 'directory' && !SKIPPED_DIRECTORIES.test(child.name))
      for (const { name } of children)
        if (PROGRAM_DIRECTORY_NAMES.includes(name)) out.add(`${directory}/${name}`)
        else next.push(`${directory}/${name}`)
    }
    level = next
  }
}

export const isProgramDirectory = (path: string): boolean => PROGRAM_DIRECTORY_NAMES.includes(basename(path))

/** Searches the whole workspace for what `**` + `/` globs deny, before a sandbox starts. */
import { PenError } from '../base/error.ts'
import { printable, shellWord } from '../base/printable.ts'
import type { Glob } from '../policy/files/glob.ts'
import { type AnyDepth, isTextPath, shownPath, type TreePath } from './any-depth.ts'
import { nonUtf8Denied } from './expand.ts'

/** Takes 0.3 s with a warm cache, and as many inotify watches while the sandbox runs. */
export const MAX_DIRECTORIES = 20_000

/** The denied paths of each glob. Links among them are not resolved. */
export function searchTree(search: AnyDepth, most = MAX_DIRECTORIES): ReadonlyMap<Glob, readonly string[]> {
  const found = new Map<Glob, string[]>(search.globs.map(glob => [glob, []]))
  const queue: TreePath[] = [search.workspace]
  for (let i = 0; i < queue.length; i++) {
    if (queue.length > most) throw tooLarge(search, queue, most)
    const visited = visit(search, queue[i] ?? '')
    for (const { path, globs } of visited?.denied ?? []) {
      if (!isTextPath(path)) throw nonUtf8Denied(shownPath(path))
      for (const glob of globs) found.get(glob)?.push(path)
    }
    for (const path of visited?.directories ?? []) queue.push(path)
  }
  return found
}

/** In one go: nothing else waits for this process yet. */
function visit(search: AnyDepth, dir: TreePath) {
  const steps = search.visit(dir)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

function tooLarge({ workspace, globs }: AnyDepth, queue: readonly TreePath[], most: number): PenError {
  const counts = new Map<string, number>()
  for (const path of queue) {
    const [top = ''] = shownPath(path)
      .slice(workspace.length + 1)
      .split('/', 1)
    if (top !== '') counts.set(top, (counts.get(top) ?? 0) + 1)
  }
  const [largest = ['', 0]] = [...counts].sort((a, b) => b[1] - a[1])
  const word = shellWord(`${largest[0]}/`) ?? 'DIRECTORY/'
  const pattern = globs[0]?.text ?? ''
  return new PenError('PATH_REFUSED', {
    what: `files.deny ${pattern} is searched in all directories, and the project has more than ${most}; most of those found are in ${printable(`./${largest[0]}`, 200)}`,
    at: printable(workspace, 1024),
    hint: `name the directories: --deny 'packages/*/${pattern.slice(3)}'; or hide a large directory that the sandbox does not need: --deny ${word}`,
  })
}

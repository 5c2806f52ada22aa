/** The object directories that a repository borrows from others, as its `objects/info/alternates` lists them. */

import { basename, dirname, resolve } from '../../base/posix-path.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { looksLikeGitDir, realPath } from './directory.ts'

/** git's own limit. */
const MAX_DEPTH = 5
const MAX_ALTERNATES = 50
const MAX_BYTES = 64 * 1024

/**
 * `at` is where the sandbox has the repository's objects. A relative line leads from there, so the borrowed directory is
 * mounted at the path that git inside will look at.
 */
export function alternates(
  gitDir: string,
  at: string,
): readonly { readonly from: string; readonly at: string }[] {
  const found = new Map<string, { from: string; at: string }>()
  const collect = (objects: string, inside: string, depth: number): void => {
    if (depth > MAX_DEPTH) return
    for (const line of readLines(`${objects}/info/alternates`)) {
      const from = realPath(resolve(objects, line))
      const place = resolve(inside, line)
      if (from === undefined || found.has(place) || found.size >= MAX_ALTERNATES) continue
      if (!isObjectDirectory(from)) continue
      found.set(place, { from, at: place })
      collect(from, place, depth + 1)
    }
  }
  collect(`${gitDir}/objects`, at, 1)
  return [...found.values()]
}

/**
 * An earlier run may have made this repository with `git init` and written the file. Any other directory would be mounted and
 * readable inside, such as `~/.ssh`.
 */
const isObjectDirectory = (dir: string): boolean =>
  basename(dir) === 'objects' && looksLikeGitDir(dirname(dir))

const readLines = (file: string): readonly string[] =>
  (readRegularFile(file, { maxBytes: MAX_BYTES })?.toString('utf8') ?? '')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#') && !line.startsWith('"'))

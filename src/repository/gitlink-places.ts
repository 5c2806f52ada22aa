/**
 * The places where the host's git enters another repository: a plain `git status` does so at each gitlink of the index. What
 * lies there at the start of a run is held by mounts. A gitlink that is new needs a look at what a sandbox put there.
 */
import { closeSync, renameSync } from 'node:fs'
import { lookAt } from '../base/beneath/look-at.ts'
import { openCanonical, tryOpenBeneath } from '../base/beneath/open-beneath.ts'
import { dirname, resolve } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'
import type { GitDirectory } from '../plan/facts.ts'
import { readGitConfig, readGitFile, readPointer } from '../survey/git/directory.ts'
import { gitlinks } from '../survey/git/gitlinks.ts'

export interface Worktrees {
  readonly git: GitDirectory
  readonly records: readonly string[]
  readonly workspace: string
}

/** The git directories with an index, each with the top of its working tree. */
export function indexes({ git, records, workspace }: Worktrees): readonly { dir: string; top: string }[] {
  const own = records.map(record => {
    const dir = record === '.' ? git.path : `${git.path}/${record}`
    const pointer = record === '.' ? undefined : readPointer(`${dir}/gitdir`)
    return { dir, top: pointer === undefined ? workspace : dirname(pointer) }
  })
  const below = git.submodules.flatMap(({ path: dir }) => {
    const tree = readGitConfig(`${dir}/config`)?.findLast(({ key }) => key === 'core.worktree')?.value
    return tree === undefined ? [] : [{ dir, top: resolve(dir, tree) }]
  })
  return [...own, ...below]
}

/** Absolute paths. Undefined when an index cannot be read. `cache` is a file in pen's state. */
export function gitlinkPlaces(worktrees: Worktrees, cache: string): ReadonlySet<string> | undefined {
  const places = new Set<string>()
  for (const { dir, top } of indexes(worktrees)) {
    const { paths, complete } = gitlinks(dir, cache)
    if (!complete) return undefined
    for (const path of paths) places.add(`${top}/${path}`)
  }
  return places
}

/**
 * Renames a `.git` that does not lead to a repository of the host's: the sandbox could write it. No process of the sandbox
 * may run. Returns lines for the user.
 */
export function setAsidePlanted(
  { git, workspace }: Worktrees,
  places: Iterable<string>,
  mark: string,
): readonly string[] {
  const lines: string[] = []
  const top = openCanonical(workspace)
  try {
    for (const place of places) {
      if (!place.startsWith(`${workspace}/`)) continue
      const dir = tryOpenBeneath(top, place.slice(workspace.length + 1))
      if (dir === undefined) continue
      try {
        const file = `/proc/self/fd/${dir}/.git`
        const stats = lookAt(file)
        const target = stats?.isFile() && stats.nlink === 1n ? readGitFile(file, place) : undefined
        const isOwn = target?.startsWith(`${git.path}/`) === true && lookAt(target)?.isDirectory() === true
        if (stats === undefined || isOwn) continue
        renameSync(file, `${file}.${mark}`)
        lines.push(
          `git: ${printable(place, 500)} is a submodule now, and its .git was the sandbox's to write: it is .git.${mark} there; fix: git submodule update --init, on the host`,
        )
      } finally {
        closeSync(dir)
      }
    }
  } finally {
    closeSync(top)
  }
  return lines
}

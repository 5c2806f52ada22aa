/**
 * The places where the host's git enters another repository: a plain `git status` does so at each gitlink of the index. What
 * lies there at the start of a run is held by mounts. A gitlink that is new needs a look at what a sandbox put there.
 */
import { closeSync, renameSync } from 'node:fs'
import { at, CHANGE, withAccess, withSpot } from '../../base/beneath/beneath.ts'
import { lookAt } from '../../base/beneath/look-at.ts'
import { openCanonical } from '../../base/beneath/open-beneath.ts'
import { errnoOf, PenError } from '../../base/error.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import { gitDirAt, readGitFile, readPointer, workTreeOf } from '../../survey/git/directory.ts'
import type { Enclosing } from '../../survey/git/enclosing.ts'
import { gitlinks } from '../../survey/git/gitlinks.ts'
import { listDirectory } from '../../survey/git/submodules.ts'

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
    const top = workTreeOf(dir)
    return top === undefined ? [] : [{ dir, top }]
  })
  return [...own, ...below]
}

/** More than the survey takes at a start. */
const MAX_ENTERED = 1000

export interface Entered {
  /** Working trees that git enters, absolute. */
  readonly places: ReadonlySet<string>
  /** The files and directories that change with each new one. */
  readonly files: readonly string[]
}

/** Where git on the host enters what is in the project. */
export interface Entering {
  readonly workspace: string
  /** Undefined where the project has no repository that works inside. */
  readonly own: Worktrees | undefined
  readonly enclosing: readonly Enclosing[]
}

/** Git directories of the host. The sandbox cannot write them. */
const stores = ({ own, enclosing }: Entering): readonly string[] => [
  ...(own === undefined ? [] : [own.git.path]),
  ...enclosing.map(({ commonDir }) => commonDir),
]

/** Undefined when an index cannot be read. `cache` is a file in pen's state. */
export function gitlinkPlaces(entering: Entering, cache: string): Entered | undefined {
  const { workspace, own, enclosing } = entering
  const places = new Set<string>()
  const dirs = new Set<string>()
  const queue = [...(own === undefined ? [] : indexes(own)), ...enclosing]
  const tops = stores(entering).map(store => `${store}/worktrees`)
  const records = tops.flatMap(top => listDirectory(top).map(name => `${top}/${name}`))
  // Also one that the user adds during a run: the sandbox could rewrite its `.git` file.
  for (const dir of records) {
    const pointer = readPointer(`${dir}/gitdir`)
    if (!pointer?.startsWith(`${workspace}/`)) continue
    places.add(dirname(pointer))
    queue.push({ dir, top: dirname(pointer) })
  }
  for (const { dir, top } of queue) {
    if (dirs.has(dir)) continue
    dirs.add(dir)
    const { paths, complete } = gitlinks(dir, cache)
    if (!complete || dirs.size > MAX_ENTERED) return undefined
    for (const path of paths) {
      const place = `${top}/${path}`
      if (!place.startsWith(`${workspace}/`)) continue
      places.add(place)
      const nested = gitDirAt(place)
      if (nested !== undefined) queue.push({ dir: nested, top: place })
    }
  }
  const files = [...tops, ...records.map(dir => `${dir}/gitdir`), ...[...dirs].map(dir => `${dir}/index`)]
  return { places, files }
}

/** Below a git directory. Its parts may come from a sandbox. */
const MODULE =
  /^(?:worktrees\/[^/]+\/)?modules\/[A-Za-z0-9_][\w.+-]{0,100}(?:\/[A-Za-z0-9_][\w.+-]{0,100}){0,6}$/

/** The place of a submodule's repository in the host's. Other directories there, such as refs, have names of the sandbox's. */
export function moduleName(store: string, target: string | undefined): string | undefined {
  const below = target?.startsWith(`${store}/`) ? target.slice(store.length + 1) : ''
  return MODULE.test(below) ? below : undefined
}

/**
 * Renames a `.git` that does not lead to a repository of the host's: the sandbox could write it. No process of the sandbox
 * may run. `places` are paths of such a `.git`. Returns lines for the user.
 */
export function setAsidePlanted(entering: Entering, places: Iterable<string>): readonly string[] {
  const { workspace } = entering
  // The project was moved or removed. The end of the run says where the sandbox's repository is.
  if (lookAt(workspace) === undefined) return []
  const top = openCanonical(workspace)
  try {
    return [...places].flatMap(place => {
      if (!place.startsWith(`${workspace}/`)) return []
      const names = place.slice(workspace.length + 1).split('/')
      try {
        const line = withSpot(top, names, ({ parent, name, depth }) =>
          depth < names.length
            ? undefined
            : withAccess(parent, CHANGE, () =>
                setAside(stores(entering), place, at(parent, name).toString()),
              ),
        )
        return line === undefined ? [] : [line]
      } catch (error) {
        if (errnoOf(error) === undefined && !(error instanceof PenError)) throw error
        return [
          `git: pen could not look at ${printable(place, 500)}, where git enters what the sandbox could write; fix: remove it before you use git`,
        ]
      }
    })
  } finally {
    closeSync(top)
  }
}

function setAside(stores: readonly string[], place: string, file: string): string | undefined {
  const stats = lookAt(file)
  const target = stats?.isFile() && stats.nlink === 1n ? readGitFile(file, dirname(place)) : undefined
  const isRecord = (store: string): boolean =>
    dirname(target ?? '') === `${store}/worktrees` && readPointer(`${target}/gitdir`) === place
  const isOwn =
    stores.some(store => isRecord(store) || moduleName(store, target) !== undefined) &&
    lookAt(target ?? '')?.isDirectory() === true
  if (stats === undefined || isOwn) return undefined
  // The sandbox must not guess the name: a directory there would prevent the rename.
  const mark = `planted-${crypto.randomUUID().slice(0, 8)}`
  renameSync(file, `${file}.${mark}`)
  return `git: ${printable(place, 500)} was the sandbox's to write, and git on the host would obey it: it is ${basename(place)}.${mark} now; fix: look at its config and hooks before you rename it; for a submodule: git submodule update --init`
}

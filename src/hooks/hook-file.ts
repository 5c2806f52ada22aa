/** A file of an agent's settings, in the project or in the user's home. A sandbox may replace parts of a project's path by links. */
import {
  closeSync,
  constants,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmdirSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { basename, dirname } from '../base/posix-path.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { locate } from '../config/locate.ts'
import { confirmPathStays, ownerOf } from '../config/pen-directory.ts'

const MAX_BYTES = 1_048_576

export interface Place {
  /** The project, or the user's home. */
  readonly root: string
  /** Relative to the root. */
  readonly path: string
  /** In the home a link to the settings is the user's own. */
  readonly followsLinks: boolean
}

export const fullPath = ({ root, path }: Place): string => `${root}/${path}`

/** Runs `act` with a path to the file that cannot change. Undefined when its directory is absent, unless it is made. */
function atPlace<T>(place: Place, make: boolean, act: (path: string) => T): T | undefined {
  if (place.followsLinks) {
    const { real } = locate(fullPath(place))
    if (make) mkdirSync(dirname(real), { recursive: true, mode: 0o755 })
    return lstatSync(dirname(real), { throwIfNoEntry: false }) === undefined ? undefined : act(real)
  }
  const opened = [openFolder(place.root, place)]
  try {
    for (const name of place.path.split('/').slice(0, -1)) {
      const path = `/proc/self/fd/${opened.at(-1)}/${name}`
      if (make) makeFolder(path, place.root)
      else if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined
      opened.push(openFolder(path, place))
    }
    return act(`/proc/self/fd/${opened.at(-1)}/${basename(place.path)}`)
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}

function openFolder(path: string, place: Place): number {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
  try {
    return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  } catch (cause) {
    throw new PenError('PATH_REFUSED', {
      what: `a directory of ${fullPath(place)} is a link, or cannot be opened`,
      at: fullPath(place),
      hint: 'inspect it, then replace it with a directory',
      cause,
    })
  }
}

function makeFolder(path: string, root: string): void {
  try {
    mkdirSync(path, { mode: 0o755 })
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
    return
  }
  const owner = ownerOf(root)
  if (owner !== undefined) lchownSync(path, owner.uid, owner.gid)
}

export const readPlace = (place: Place): Buffer | undefined =>
  atPlace(place, false, path => readRegularFile(path, { maxBytes: MAX_BYTES, name: fullPath(place) }))

/** Returns the first directory that was made, relative to the root. */
export function writePlace(place: Place, text: string): string | undefined {
  const { root, path } = place
  const folders = path.split('/').slice(0, -1)
  const made = folders
    .map((_, at) => folders.slice(0, at + 1).join('/'))
    .find(folder => lstatSync(`${root}/${folder}`, { throwIfNoEntry: false }) === undefined)
  atPlace(place, true, file => {
    const before = statSync(file, { throwIfNoEntry: false })
    const owner = before !== undefined && process.getuid?.() === 0 ? before : ownerOf(root)
    writeFileAtomically(file, text, {
      mode: (before?.mode ?? 0o644) & 0o777,
      owner,
      name: fullPath(place),
    })
    if (before === undefined && !place.followsLinks)
      confirmPathStays(fullPath(place), lstatSync(file, { throwIfNoEntry: false }) ?? { dev: 0, ino: 0 })
  })
  return made
}

/** Also removes the directories that pen made, when nothing else is in them. */
export function removePlace(place: Place, made: string | undefined): void {
  atPlace(place, false, file => unlinkSync(file))
  let folder = dirname(place.path)
  try {
    for (; made !== undefined && folder.length >= made.length; folder = dirname(folder))
      rmdirSync(`${place.root}/${folder}`)
  } catch {
    // It has other files.
  }
}

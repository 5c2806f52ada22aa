/**
 * Takes a directory of pen's state away with all that a sandbox put into it: directories that are shut, names that are no text, a depth
 * that no path can spell. By descriptor: no link is ever followed, whoever puts one there meanwhile. Each directory is lifted to the
 * top before it is emptied, so that the deepest tree takes two descriptors, and time only by the number of its names.
 */
import {
  closeSync,
  constants,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
} from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { basename, dirname } from '../base/posix-path.ts'
import { at, itself, openDirectory } from './beneath.ts'

type Name = string | Buffer

/** The directory above it is pen's own. Throws what the kernel says of the first name that cannot go. */
export function removeTree(path: string): void {
  // Elsewhere no sandbox has a volume: all that is there is pen's own.
  if (process.platform === 'linux') removeByDescriptor(path)
  else rmSync(path, { recursive: true, force: true })
}

function removeByDescriptor(path: string): void {
  const above = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    if (unlinked(above, basename(path))) return
    const top = opened(above, basename(path))
    try {
      // What is lifted comes in the next round.
      for (let names = namesIn(top); names.length > 0; names = namesIn(top))
        for (const name of names) if (!unlinked(top, name)) removeShallow(top, name)
    } finally {
      closeSync(top)
    }
    rmdirSync(at(above, basename(path)))
  } finally {
    closeSync(above)
  }
}

function removeShallow(top: number, name: Name): void {
  const directory = opened(top, name)
  try {
    for (const inner of namesIn(directory)) if (!unlinked(directory, inner)) lift(directory, inner, top)
  } finally {
    closeSync(directory)
  }
  rmdirSync(at(top, name))
}

/** Only a directory that its owner may write can be moved to another: opening makes it so. To a name that nobody could have foreseen. */
function lift(parent: number, name: Name, top: number): void {
  closeSync(opened(parent, name))
  renameSync(at(parent, name), at(top, `pen-removes-${crypto.randomUUID()}`))
}

/** False for a directory. */
function unlinked(parent: number, name: Name): boolean {
  try {
    unlinkSync(at(parent, name))
    return true
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'ENOENT') return true
    if (errno !== 'EISDIR') throw error
    return false
  }
}

function opened(parent: number, name: Name): number {
  const fd = openDirectory(at(parent, name))
  if (fd === undefined) throw Object.assign(new Error('a directory was replaced'), { code: 'ENOTDIR' })
  return fd
}

const namesIn = (directory: number): Buffer[] => readdirSync(itself(directory), { encoding: 'buffer' })

/**
 * Takes a tree away with all that a sandbox put into it: directories that are shut, names that are no text, a depth that no path can
 * spell. By descriptor: no link is ever followed, whoever puts one there meanwhile. Each directory is lifted to the top before it is
 * emptied, so that the deepest tree takes two descriptors, and time only by the number of its names.
 */
import { closeSync, constants, openSync, renameSync, rmdirSync, rmSync, unlinkSync } from 'node:fs'
import { directoryEntries } from '../directory-entries.ts'
import { errnoOf } from '../error.ts'
import { basename, dirname } from '../posix-path.ts'
import { at, openForRemoval } from './beneath.ts'

type Name = string | Buffer

/** For a directory of pen's state, and the directory above it is pen's own, too. Throws what the kernel says of the first name that cannot go. */
export function removeTree(path: string): void {
  // Elsewhere no sandbox has a volume: all that is there is pen's own.
  if (process.platform !== 'linux') {
    rmSync(path, { recursive: true, force: true })
    return
  }
  const above = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    for (const _ of removeInSteps(above, basename(path)));
  } finally {
    closeSync(above)
  }
}

/** One name after the other. `above` stays the caller's. */
export function* removeInSteps(above: number, name: Name): Generator<void, void, void> {
  if (unlinked(above, name)) return
  const top = opened(above, name)
  try {
    // What is lifted comes in the next round.
    for (let isEmpty = false; !isEmpty; ) {
      isEmpty = true
      for (const { name: inner } of directoryEntries(top)) {
        isEmpty = false
        if (!unlinked(top, inner)) yield* removeShallow(top, inner)
        yield
      }
    }
  } finally {
    closeSync(top)
  }
  rmdirSync(at(above, name))
}

function* removeShallow(top: number, name: Name): Generator<void, void, void> {
  const directory = opened(top, name)
  try {
    for (const { name: inner } of directoryEntries(directory)) {
      if (!unlinked(directory, inner)) lift(directory, inner, top)
      yield
    }
  } finally {
    closeSync(directory)
  }
  removeEmpty(top, name)
}

/** A listing that names come and go from meanwhile may pass one over: the next round finds it. */
function removeEmpty(top: number, name: Name): void {
  try {
    rmdirSync(at(top, name))
  } catch (error) {
    if (errnoOf(error) !== 'ENOTEMPTY') throw error
  }
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
  const fd = openForRemoval(at(parent, name))
  if (fd === undefined) throw Object.assign(new Error('a directory was replaced'), { code: 'ENOTDIR' })
  return fd
}

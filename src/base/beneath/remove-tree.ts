/**
 * Removes a tree that a sandbox could write: with locked directories, non-UTF-8 names, and paths longer than PATH_MAX. It
 * works by descriptor and follows no link, also when one appears during the removal. Each directory is moved to the top
 * before it is emptied. So the deepest tree needs two descriptors, and the time grows only with the number of names.
 */
import { closeSync, constants, openSync, renameSync, rmdirSync, rmSync, unlinkSync } from 'node:fs'
import { errnoOf } from '../error.ts'
import { basename, dirname } from '../posix-path.ts'
import { at, openDirectory, openForRemoval } from './beneath.ts'
import { directoryEntries } from './directory-entries.ts'

type Name = string | Buffer

/** The directory above must not be writable by a sandbox. Throws the kernel's error for the first name that stays. */
export function removeTree(path: string): void {
  // Only Linux has /proc/self/fd, and only there does a sandbox have volumes.
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

/** Called before each name is removed, with its directory and its path below the first one. Throws to keep it. */
export type Judge = (directory: number, path: string) => void

/**
 * Removes one name per step. The caller closes `above`. With a judge, directories are emptied where they are and locked
 * ones stay locked, so that everything a refusal keeps is as it was. Each level then needs two descriptors.
 */
export function* removeInSteps(
  above: number,
  name: Name,
  judge?: Judge,
  path = name.toString(),
): Generator<void, void, void> {
  judge?.(above, path)
  if (unlinked(above, name)) return
  const top = opened(above, name, judge === undefined ? openForRemoval : openDirectory)
  try {
    // The next round empties the directories that this one moved up.
    for (let isEmpty = false; !isEmpty; ) {
      isEmpty = true
      for (const { name: inner } of directoryEntries(top)) {
        isEmpty = false
        if (judge !== undefined) yield* removeInSteps(top, inner, judge, `${path}/${inner}`)
        else if (!unlinked(top, inner)) yield* removeShallow(top, inner)
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

/** A listing may miss a name while others are added and removed. The next round finds it. */
function removeEmpty(top: number, name: Name): void {
  try {
    rmdirSync(at(top, name))
  } catch (error) {
    if (errnoOf(error) !== 'ENOTEMPTY') throw error
  }
}

/** Moving a directory needs write access to it: `opened` grants that to the owner. The new name cannot be guessed. */
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

/** Throws for a directory of another mount: it is not part of the tree. */
function opened(parent: number, name: Name, open = openForRemoval): number {
  const fd = open(at(parent, name), parent)
  if (fd === undefined) throw Object.assign(new Error('a directory was replaced'), { code: 'ENOTDIR' })
  return fd
}

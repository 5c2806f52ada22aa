/**
 * Moves one entry out of the workspace by a rename. It follows no link, is fast even for a directory of a million files, and
 * deletes nothing: the entry may be the user's.
 */
import { closeSync, lstatSync, renameSync } from 'node:fs'
import {
  at,
  CHANGE,
  openDirectory,
  openForRemoval,
  requireMountOf,
  type Spot,
  withAccess,
} from '../base/beneath/beneath.ts'
import { errnoOf } from '../base/error.ts'
import { asideName, isAside } from './watch-record.ts'

export interface Taken {
  readonly what: string
  /** Undefined when it was moved. Otherwise its new name in its own directory, and the errno of the move. */
  readonly stuck: { readonly aside: string; readonly why: string } | undefined
}

/** To `label` in the directory `dir`. Undefined: the entry is already gone. */
export function moveOut(spot: Spot, dir: string, label: string): Taken | undefined {
  const store = openForRemoval(dir)
  if (store === undefined) throw Object.assign(new Error(dir), { code: 'ENOTDIR' })
  try {
    return withAccess(spot.parent, CHANGE, () => {
      const why = moveInto(spot, store, label)
      if (why === undefined) return { what: kindOf(at(store, label)), stuck: undefined }
      const aside = renameAside(spot)
      return { what: kindOf(at(spot.parent, aside)), stuck: { aside, why } }
    })
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  } finally {
    closeSync(store)
  }
}

/** Returns the errno. A directory moves to another parent only when pen may write it. A mount of the user's stays. */
function moveInto({ parent, name, stats }: Spot, store: number, label: string): string | undefined {
  const move = (): void => renameSync(at(parent, name), at(store, label))
  let dir: number | undefined
  try {
    dir = stats.isDirectory() ? openDirectory(at(parent, name)) : undefined
    if (dir === undefined) move()
    else {
      requireMountOf(parent, dir)
      withAccess(dir, CHANGE, move)
    }
    return undefined
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined || errno === 'ENOENT') throw error
    return errno
  } finally {
    if (dir !== undefined) closeSync(dir)
  }
}

/** In its own directory: this needs no access to the entry, and no other file system. */
function renameAside({ parent, name }: Spot): string {
  if (isAside(name)) return name
  const aside = asideName()
  renameSync(at(parent, name), at(parent, aside))
  return aside
}

function kindOf(path: string | Buffer): string {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return 'nothing'
  if (stats.isSymbolicLink()) return 'link'
  if (stats.isDirectory()) return 'directory'
  return stats.isFile() ? 'file' : 'special file'
}

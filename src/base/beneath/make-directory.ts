/**
 * Makes a directory in the project, where a running sandbox may swap directories for links. Followed by root, such a link
 * could lead anywhere. So each component is made in an open directory, and no link is followed.
 */
import { closeSync, lchownSync, mkdirSync } from 'node:fs'
import { errnoOf } from '../error.ts'
import { at, openDirectory } from './beneath.ts'

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Returns the new directories, parents first. `owner` is their owner, when that is another user. */
export function makeDirectoryBeneath(
  root: string,
  path: string,
  owner: Owner | undefined,
): readonly string[] {
  const open: number[] = []
  const enter = (name: string | Buffer): number => {
    const fd = openDirectory(name)
    if (fd === undefined) throw Object.assign(new Error(`${path} is not a directory`), { code: 'ENOTDIR' })
    open.push(fd)
    return fd
  }
  const made: string[] = []
  let here = root
  try {
    let dir = enter(root)
    for (const name of path.slice(root.length).split('/').slice(1)) {
      here = `${here}/${name}`
      if (makeOne(at(dir, name), owner)) made.push(here)
      dir = enter(at(dir, name))
    }
    return made
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

function makeOne(path: string | Buffer, owner: Owner | undefined): boolean {
  try {
    mkdirSync(path, { mode: 0o755 })
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
  if (owner !== undefined) lchownSync(path, owner.uid, owner.gid)
  return true
}

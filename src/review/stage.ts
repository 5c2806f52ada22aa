/** Writes the new version of a file beside its place in the project. It is a copy of what was shown, or there is none. */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  mkdirSync,
  openSync,
  symlinkSync,
} from 'node:fs'
import { at } from '../base/beneath/beneath.ts'
import { setModified } from '../base/beneath/rename-at.ts'
import { errnoOf } from '../base/error.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { writeAll } from '../base/write-all.ts'
import type { Change } from './change.ts'
import { copyContent } from './digest.ts'
import { type Entry, nameBytes, unlocked, withContent, withFile } from './entry.ts'

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** It is not, or no longer, what the user was shown. */
export class NotAsShown extends Error {}

const SINCE_SHOWN = 'the sandbox changed it after it was listed'

export interface Staging {
  /** The directory in the project. */
  readonly dir: number
  /** The name beside the place. */
  readonly beside: string
  /** The directory in the layer, and the name there. */
  readonly layer: number
  readonly name: string
  readonly owner: Owner | undefined
}

/** Returns a descriptor to flush, for a file. The caller removes what a failure leaves. */
export function stage({ after, merged }: Change, to: Staging): number | undefined {
  if (after === undefined) throw new NotAsShown(SINCE_SHOWN)
  if (after.type === 'link') {
    stageLink(after, to)
    return undefined
  }
  if (after.type === 'directory') {
    makeDirectory(to.dir, to.beside, to.owner)
    return undefined
  }
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const fd = openSync(at(to.dir, to.beside), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    if (merged !== undefined) writeAll(fd, merged)
    else copyShown(after, fd, to)
    const { owner } = to
    if (owner !== undefined) give(() => fchownSync(fd, owner.uid, owner.gid))
    fchmodSync(fd, after.mode)
    setModified(to.dir, to.beside, after.mtimeNs)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

function copyShown(after: Entry, fd: number, { layer, name }: Staging): void {
  const digest = unlocked(layer, name, () =>
    withFile(layer, name, (from, { size }) => copyContent(from, fd, Number(size))),
  )
  if (digest !== after.content) throw new NotAsShown(SINCE_SHOWN)
}

function stageLink(after: Entry, { dir, beside, layer, name, owner }: Staging): void {
  const now = withContent(layer, name, after)
  if (now.content !== after.content) throw new NotAsShown(SINCE_SHOWN)
  symlinkSync(nameBytes(now.content ?? ''), at(dir, beside))
  if (owner !== undefined) give(() => lchownSync(at(dir, beside), owner.uid, owner.gid))
  setModified(dir, beside, after.mtimeNs)
}

/** It gets its final mode when everything in it is there. */
export function makeDirectory(dir: number, name: string, owner: Owner | undefined): void {
  const path = at(dir, nameBytes(name))
  mkdirSync(path, 0o700)
  if (owner !== undefined) give(() => lchownSync(path, owner.uid, owner.gid))
}

/** As the file that it replaces, or as its directory. Undefined where a new file has this owner anyway. */
export function ownerFor(dir: number, replaced: Owner | undefined): Owner | undefined {
  const { uid, gid } = replaced ?? fstatSync(dir)
  if (isHostRoot()) return { uid, gid }
  return gid === process.getgid?.() ? undefined : { uid: process.getuid?.() ?? uid, gid }
}

/** An ordinary user may not give a file to every group. */
function give(act: () => void): void {
  try {
    act()
  } catch (error) {
    if (isHostRoot() || errnoOf(error) !== 'EPERM') throw error
  }
}

/**
 * Puts a staged name into its place, and drops what was there only if it is what the user was shown. Otherwise everything is
 * as before. A new directory entry, a replaced one and a removed one take the same way.
 */
import { rmdirSync, unlinkSync } from 'node:fs'
import { at } from '../base/beneath/beneath.ts'
import { lookAt } from '../base/beneath/look-at.ts'
import { exchange, renameToFree } from '../base/beneath/rename-at.ts'
import { errnoOf } from '../base/error.ts'
import { whileUnwritten } from '../base/kernel/read-lease.ts'
import { type Entry, isUntouched, type Known, lookInto, nameBytes } from './entry.ts'
import { NotAsShown } from './stage.ts'

const CHANGED = 'it changed on the host after it was listed'

/** Throws `NotAsShown` with the project as it was. The staged name may be there still. */
export function putInPlace(dir: number, beside: string, name: string, before: Entry | undefined): void {
  if (before === undefined) {
    moveToFree(dir, beside, name)
    return
  }
  requireAsShown(before, lookInto(dir, name))
  exchange(dir, beside, nameBytes(name))
  dropOr(dir, beside, before, () => exchange(dir, beside, nameBytes(name)))
}

/** Moves a file aside, and removes it there. */
export function takeAway(dir: number, beside: string, name: string, before: Entry): void {
  requireAsShown(before, lookInto(dir, name))
  renameToFree(dir, nameBytes(name), beside)
  dropOr(dir, beside, before, () => moveToFree(dir, beside, name))
}

export function moveToFree(dir: number, beside: string, name: string): void {
  try {
    renameToFree(dir, beside, nameBytes(name))
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw new NotAsShown(CHANGED)
    throw error
  }
}

/** Also the ctime, which a rename renews: before the move it tells of every edit. */
export function requireAsShown(before: Entry, now: Entry | undefined): void {
  const isSame =
    now !== undefined &&
    isUntouched(before, now) &&
    (before.type === 'directory' || before.ctimeNs === now.ctimeNs)
  if (!isSame) throw new NotAsShown(CHANGED)
}

function dropOr(dir: number, beside: string, before: Known, putBack: () => void): void {
  let why: string | undefined
  try {
    why = drop(dir, beside, before)
  } catch (error) {
    putBack()
    throw error
  }
  if (why === undefined) return
  putBack()
  throw new NotAsShown(why)
}

/** Removes a displaced entry that nothing edited and nothing writes. Returns why it stays. */
export function drop(dir: number, beside: string, before: Known): string | undefined {
  const removeUnedited = (): string | undefined => {
    const now = lookInto(dir, beside)
    if (now === undefined || !isUntouched(before, now)) return CHANGED
    if (before.type === 'directory') return dropDirectory(dir, beside)
    unlinkSync(at(dir, beside))
    return undefined
  }
  return before.type === 'file' ? withoutWriter(String(at(dir, beside)), removeUnedited) : removeUnedited()
}

/** Without a lease (no permission to read it) the times tell. */
function withoutWriter(path: string, act: () => string | undefined): string | undefined {
  let why: string | undefined = 'a program is writing it'
  const note = (): boolean => {
    why = act()
    return true
  }
  try {
    whileUnwritten(path, note)
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error
    note()
  }
  return why
}

function dropDirectory(dir: number, beside: string): string | undefined {
  try {
    rmdirSync(at(dir, beside))
    return undefined
  } catch (error) {
    if (errnoOf(error) === 'ENOTEMPTY') return NOT_EMPTY
    throw error
  }
}

export const NOT_EMPTY = 'the directory has files that stay'

/** For a name that pen staged. */
export function removeBeside(dir: number, beside: string): void {
  const left = lookAt(at(dir, beside))
  if (left?.isDirectory() === true) rmdirSync(at(dir, beside))
  else if (left !== undefined) unlinkSync(at(dir, beside))
}

/**
 * Moves one entry out of the workspace. A rename follows no link, and is fast even for a directory of a million files. The
 * entry is then disarmed, removed or copied to another file system in steps (see slices.ts).
 */
import { closeSync, constants, lstatSync, openSync, renameSync } from 'node:fs'
import { at, CHANGE, itself, openForRemoval, type Spot, withAccess } from '../base/beneath/beneath.ts'
import { removeInSteps } from '../base/beneath/remove-tree.ts'
import { type Budget, copyTree, disarmTree } from '../base/beneath/tree.ts'
import { errnoOf } from '../base/error.ts'
import { O_PATH } from '../base/kernel/descriptor.ts'
import { ASIDE } from './watch-record.ts'

/** Without `rest` it could not be moved to the quarantine, for the reason `why`. */
export interface Taken {
  readonly what: string
  /** Its name in its old directory, while it is there. */
  readonly aside: string
  readonly why: string
  /** The remaining work. It owns descriptors: run it to its end, or call `return`. */
  readonly rest: Rest | undefined
}

/** Where an entry goes: `label` in the directory `dir`, or `aside` in its own directory. */
export interface Target {
  readonly dir: string
  readonly label: string
  readonly aside: string
}

/** `removed`: too much to keep. `partly`: not all of it could be copied. `full`: there is no space for a copy. */
export type Rest = Generator<void, 'kept' | 'partly' | 'removed' | 'full', void>

const MAX_ENTRIES = 5000

/** `room` is the remaining quarantine budget; without it the entry is removed. Undefined: the entry is already gone. */
export function moveOut(spot: Spot, target: Target, room: { bytes: number } | undefined): Taken | undefined {
  const { label, aside } = target
  const store = openForRemoval(target.dir)
  if (store === undefined) throw Object.assign(new Error(target.dir), { code: 'ENOTDIR' })
  let rest: Rest | undefined
  try {
    return withAccess(spot.parent, CHANGE, () => {
      const why = moveInto(spot, store, label)
      if (why === '') rest = settleMoved(store, label, room)
      if (why === '') return { what: kindOf(at(store, label)), aside, why, rest }
      const name = renameAside(spot, aside, why)
      const what = kindOf(at(spot.parent, name))
      if (why === 'EXDEV') rest = settleAside(reopen(spot.parent), name, store, label, room)
      return { what, aside: name, why, rest }
    })
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  } finally {
    if (rest === undefined) closeSync(store)
  }
}

/** Returns the errno, or nothing. A directory moves to another parent only when pen may write it. */
function moveInto({ parent, name, stats }: Spot, store: number, label: string): string {
  try {
    const fd = stats.isDirectory() ? openForRemoval(at(parent, name)) : undefined
    if (fd !== undefined) closeSync(fd)
    renameSync(at(parent, name), at(store, label))
    return ''
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined || errno === 'ENOENT') throw error
    return errno
  }
}

/** In its own directory: this needs no access to the entry, and no other file system. */
function renameAside({ parent, name }: Spot, aside: string, why: string): string {
  if (name.startsWith(ASIDE) && why === 'EXDEV') return name
  // A rename would replace what is there.
  if (name.startsWith(ASIDE) || lstatSync(at(parent, aside), { throwIfNoEntry: false }) !== undefined)
    throw Object.assign(new Error(name), { code: why })
  renameSync(at(parent, name), at(parent, aside))
  return aside
}

const reopen = (dir: number): number => openSync(itself(dir), O_PATH | constants.O_DIRECTORY)

function* settleMoved(store: number, label: string, room: { bytes: number } | undefined): Rest {
  try {
    const budget: Budget = { entries: MAX_ENTRIES, bytes: room?.bytes ?? 0 }
    if (room !== undefined && (yield* disarmTree(store, label, budget))) {
      room.bytes = Math.max(0, budget.bytes)
      return 'kept'
    }
    yield* removeInSteps(store, label)
    return 'removed'
  } finally {
    closeSync(store)
  }
}

/** On another file system: copied, then removed. */
function* settleAside(
  parent: number,
  aside: string,
  store: number,
  label: string,
  room: { bytes: number } | undefined,
): Rest {
  try {
    const budget: Budget = { entries: MAX_ENTRIES, bytes: room?.bytes ?? 0 }
    const whole = room !== undefined && (yield* copyTree(parent, aside, at(store, label), budget))
    if (room !== undefined) room.bytes = Math.max(0, budget.bytes)
    if (budget.isFull === true) return 'full'
    yield* removeInSteps(parent, aside)
    return room === undefined ? 'removed' : whole ? 'kept' : 'partly'
  } finally {
    closeSync(parent)
    closeSync(store)
  }
}

function kindOf(path: string | Buffer): string {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return 'nothing'
  if (stats.isSymbolicLink()) return 'link'
  if (stats.isDirectory()) return 'directory'
  return stats.isFile() ? 'file' : 'special file'
}

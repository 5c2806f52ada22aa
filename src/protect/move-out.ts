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

export interface Taken {
  readonly what: string
  /** The remaining work. It owns descriptors: run it to its end, or call `return`. */
  readonly rest: Rest
}

/** `removed`: too much to keep. `partly`: not all of it could be copied. */
export type Rest = Generator<void, 'kept' | 'partly' | 'removed', void>

const MAX_ENTRIES = 5000

/** `room` is the remaining quarantine budget; without it the entry is removed. Undefined: the entry is already gone. */
export function moveOut(
  spot: Spot,
  dir: string,
  label: string,
  room: { bytes: number } | undefined,
): Taken | undefined {
  const store = openForRemoval(dir)
  if (store === undefined) throw Object.assign(new Error(dir), { code: 'ENOTDIR' })
  let isTaken = false
  try {
    makeMovable(spot)
    const moved = withAccess(spot.parent, CHANGE, () => renameInto(spot, store, label))
    const taken = moved
      ? { what: kindOf(at(store, label)), rest: settleMoved(store, label, room) }
      : withAccess(spot.parent, CHANGE, () => putAside(spot, store, label, room))
    isTaken = true
    return taken
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  } finally {
    if (!isTaken) closeSync(store)
  }
}

// Moving a directory to another parent needs write access to it: `openForRemoval` grants that.
function makeMovable({ parent, name, stats }: Spot): void {
  const fd = stats.isDirectory() ? openForRemoval(at(parent, name)) : undefined
  if (fd !== undefined) closeSync(fd)
}

/** False when it is on another file system. */
function renameInto(spot: Spot, store: number, label: string): boolean {
  try {
    renameSync(at(spot.parent, spot.name), at(store, label))
    return true
  } catch (error) {
    if (errnoOf(error) === 'EXDEV') return false
    throw error
  }
}

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

/** On another file system: renamed first to a name that no program reads, then copied, then removed. */
function putAside(spot: Spot, store: number, label: string, room: { bytes: number } | undefined): Taken {
  const aside = `.pen-quarantine-${process.pid}-${label.slice(0, 200)}`
  const parent = openSync(itself(spot.parent), O_PATH | constants.O_DIRECTORY)
  try {
    renameSync(at(parent, spot.name), at(parent, aside))
    return { what: kindOf(at(parent, aside)), rest: settleAside(parent, aside, store, label, room) }
  } catch (error) {
    closeSync(parent)
    throw error
  }
}

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

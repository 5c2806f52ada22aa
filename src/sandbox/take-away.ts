/** Moves one entry out of the workspace. A rename never follows what it moves; where it cannot be done, a bounded copy is made. */
import { closeSync, lstatSync, renameSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { at, openDirectory, type Spot } from './beneath.ts'
import { type Budget, copyTree, disarmTree, removeTree } from './tree.ts'

export interface Taken {
  readonly to: string | null
  readonly what: string
}

const MAX_ENTRIES = 5000

/** `room` is what may still be kept, and is counted down; without it the thing is removed. Undefined: it went away by itself. */
export function takeAway(
  spot: Spot,
  dir: string,
  label: string,
  room: { bytes: number } | undefined,
): Taken | undefined {
  const store = openDirectory(dir)
  if (store === undefined) throw Object.assign(new Error(dir), { code: 'ENOTDIR' })
  try {
    openAndClose(spot)
    return moveInto(store, spot, dir, label, room) ?? copyInto(spot, dir, label, room)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  } finally {
    closeSync(store)
  }
}

// A directory that its owner may not write cannot be moved to another parent: opening makes it writable.
function openAndClose({ parent, name, stats }: Spot): void {
  const fd = stats.isDirectory() ? openDirectory(at(parent, name)) : undefined
  if (fd !== undefined) closeSync(fd)
}

function moveInto(
  store: number,
  spot: Spot,
  dir: string,
  label: string,
  room: { bytes: number } | undefined,
): Taken | undefined {
  try {
    renameSync(at(spot.parent, spot.name), at(store, label))
  } catch (error) {
    if (errnoOf(error) === 'EXDEV') return undefined
    throw error
  }
  const what = kindOf(`${dir}/${label}`)
  const budget: Budget = { entries: MAX_ENTRIES, bytes: room?.bytes ?? 0 }
  if (room !== undefined && disarmTree(store, label, budget)) {
    room.bytes = budget.bytes
    return { to: `${dir}/${label}`, what }
  }
  // Too large to keep, or one too many. What the budget leaves stays in the quarantine, out of every tool's reach.
  const gone = removeTree(store, label, { entries: MAX_ENTRIES * 10, bytes: 0 })
  return { to: gone ? null : `${dir}/${label}`, what: `${what}, too much to keep` }
}

/** Another file system: out of effect first, under a name that nothing obeys; then copied; then removed. */
function copyInto(
  { parent, name }: Spot,
  dir: string,
  label: string,
  room: { bytes: number } | undefined,
): Taken {
  const aside = `.pen-quarantine-${process.pid}-${label.slice(0, 200)}`
  renameSync(at(parent, name), at(parent, aside))
  const what = kindOf(at(parent, aside))
  const budget: Budget = { entries: MAX_ENTRIES, bytes: room?.bytes ?? 0 }
  const whole = room !== undefined && copyTree(parent, aside, `${dir}/${label}`, budget)
  if (room !== undefined) room.bytes = Math.max(0, budget.bytes)
  const gone = removeTree(parent, aside, { entries: MAX_ENTRIES * 10, bytes: 0 })
  const note = `${whole ? '' : ', not copied whole'}${gone ? '' : `, the rest is left as ${aside}`}`
  return { to: room === undefined ? null : `${dir}/${label}`, what: `${what}${note}` }
}

function kindOf(path: string | Buffer): string {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return 'nothing'
  if (stats.isSymbolicLink()) return 'link'
  if (stats.isDirectory()) return 'directory'
  return stats.isFile() ? 'file' : 'special file'
}

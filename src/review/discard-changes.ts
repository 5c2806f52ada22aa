/** Drops changes of a layer that is not mounted. The project stays as it is. */
import { lstatSync } from 'node:fs'
import { at } from '../base/beneath/beneath.ts'
import { removeInSteps } from '../base/beneath/remove-tree.ts'
import { PenError } from '../base/error.ts'
import { type Lock, tryLock } from '../config/lock.ts'
import { removePin } from '../repository/copy/pin-tips.ts'
import { changesBelow } from './choose-changes.ts'
import { nameBytes } from './entry.ts'
import { layerPaths, removeLayer } from './layer.ts'
import { OpenDirectories } from './open-directories.ts'
import type { Review } from './open-review.ts'

/** Undefined while a sandbox runs with the layer. */
const lockUnmounted = (stateDir: string): Lock | undefined => tryLock(layerPaths(stateDir).lock)

export async function discardLayer(stateDir: string, review: Review): Promise<void> {
  const lock = lockUnmounted(stateDir)
  if (lock === undefined) throw isMounted()
  try {
    await removeWithPin(stateDir, review)
  } finally {
    lock.release()
  }
}

/** Returns the paths that still differ, because a directory above them was replaced as a whole. */
export async function discardPaths(
  stateDir: string,
  { layer, places, again }: Review,
  named: readonly string[],
): Promise<readonly string[]> {
  if (layer.kind === 'copy')
    throw new PenError('STATE', {
      what: 'this layer is a copy of the project, from which single paths cannot be dropped',
      hint: 'pen accept what you want to keep, then pen discard without a path',
    })
  const lock = lockUnmounted(stateDir)
  if (lock === undefined) throw isMounted()
  try {
    using directories = new OpenDirectories(places.workspace, places.tree, 'read')
    for (const path of named) directories.inLayer(path, removeName)
    return changesBelow(await again(), named).map(({ path }) => path)
  } finally {
    lock.release()
  }
}

/** After an accept: only where nothing is left that could be accepted, and no sandbox writes to it. */
export async function removeWhenAccepted(stateDir: string, review: Review): Promise<boolean> {
  const lock = lockUnmounted(stateDir)
  if (lock === undefined) return false
  try {
    const left = await review.again()
    if (left.some(({ after }) => after?.type !== 'other')) return false
    await removeWithPin(stateDir, review)
    return true
  } finally {
    lock.release()
  }
}

/** The pin is in the user's repository. It kept what the commits of the layer borrow. */
async function removeWithPin(stateDir: string, { pinned }: Review): Promise<void> {
  if (pinned !== undefined) await removePin(pinned)
  removeLayer(stateDir)
}

function removeName(dir: number, name: string): void {
  if (lstatSync(at(dir, nameBytes(name)), { throwIfNoEntry: false }) === undefined) return
  for (const _ of removeInSteps(dir, nameBytes(name)));
}

const isMounted = (): PenError =>
  new PenError('STATE', {
    what: 'a sandbox of this project runs with this review layer, which cannot change meanwhile',
    hint: 'pen stop, then try again',
  })

/**
 * Bubblewrap makes a mount point that vanished after pen had looked: an empty file, or an empty directory, in the user's project.
 * pen removes it as soon as the mounts are complete. The place is then absent, and watched.
 */
import { closeSync, rmdirSync, unlinkSync } from 'node:fs'
import { at, withSpot } from '../../base/beneath/beneath.ts'
import { openCanonical } from '../../base/beneath/open-beneath.ts'
import { errnoOf } from '../../base/error.ts'
import type { MountPoint } from '../mounts/mount-points.ts'

/** The modes with which bubblewrap makes them. */
const FILE = 0o444
const DIRECTORY = 0o755
/** Times of files are those of the last tick of the kernel's clock. */
const TICK_MS = 20

/** `began` is a time before bubblewrap got its arguments. */
export function removeMadePoints(points: readonly MountPoint[], began: number): void {
  if (points.length === 0) return
  const top = openCanonical('/')
  try {
    for (const point of points) removeIfMade(top, point, began)
  } finally {
    closeSync(top)
  }
}

function removeIfMade(top: number, { path, ino }: MountPoint, began: number): void {
  try {
    withSpot(top, path.slice(1).split('/'), ({ parent, name, stats, depth }) => {
      const isNew = stats.ino !== ino && Number(stats.birthtimeMs) >= began - TICK_MS
      if (!isNew || depth !== path.split('/').length - 1) return
      const mode = Number(stats.mode) & 0o7777
      if (stats.isFile() && stats.size === 0n && mode === FILE) unlinkSync(at(parent, name))
      else if (stats.isDirectory() && mode === DIRECTORY) rmdirSync(at(parent, name))
    })
  } catch (error) {
    // Another process was faster, or it is not empty, and so not bubblewrap's.
    if (errnoOf(error) === undefined) throw error
  }
}

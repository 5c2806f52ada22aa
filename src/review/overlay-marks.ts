/** How overlayfs marks in an upper directory what it hides. The kernel renames such attributes of a sandbox's own. */
import type { BigIntStats } from 'node:fs'
import { itself, LIST, withAccess } from '../base/beneath/beneath.ts'
import { cString, tryCall } from '../base/kernel/system-call.ts'

const OPAQUE = cString('user.overlay.opaque')
const YES = 'y'.charCodeAt(0)

/** Nothing of the project's directory shows through this one. The kernel shows attributes to readers, and a sandbox may lock it. */
export function isOpaque(dir: number): boolean {
  const value = Buffer.alloc(2)
  const length = withAccess(dir, LIST, () =>
    tryCall('getxattr', cString(itself(dir)), OPAQUE, value, value.length),
  )
  return length === 1 && value[0] === YES
}

/** The name is deleted. */
export const isWhiteout = (stats: BigIntStats): boolean => stats.isCharacterDevice() && stats.rdev === 0n

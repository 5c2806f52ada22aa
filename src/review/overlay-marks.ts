/** How overlayfs marks in an upper directory what it hides. The kernel renames such attributes of a sandbox's own. */
import type { BigIntStats } from 'node:fs'
import { at, itself, LIST, withAccess } from '../base/beneath/beneath.ts'
import { cString, succeeded, tryCall } from '../base/kernel/system-call.ts'
import { nameBytes } from './entry.ts'

const OPAQUE = cString('user.overlay.opaque')
const EACCES = 13
const ORIGIN = cString('user.overlay.origin')
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

/** The file came from the project, under this name or another one. Hard links have no such mark. */
export function isCopiedUp(dir: number, name: string): boolean {
  const path = Buffer.concat([Buffer.from(at(dir, nameBytes(name))), Buffer.of(0)])
  const answer = tryCall('getxattr', path, ORIGIN, null, 0)
  // Most files have none. An error costs more than the call.
  return answer === -EACCES ? succeeded('getxattr', answer) >= 0 : answer >= 0
}

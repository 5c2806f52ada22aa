/**
 * Walking below a directory that a hostile process changes at the same time (Linux). Each step opens one component
 * without following links and asks the next question of that descriptor, so no answer can be about another directory.
 */
import { type BigIntStats, chmodSync, closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'

export const O_PATH = 0x20_0000
const { O_DIRECTORY, O_NOFOLLOW } = constants

/** A name in an open directory, as a path that only the kernel's own link leads through. */
export const at = (fd: number, name: string | Buffer): string | Buffer =>
  typeof name === 'string'
    ? `/proc/self/fd/${fd}/${name}`
    : Buffer.concat([Buffer.from(`/proc/self/fd/${fd}/`), name])

export const itself = (fd: number): string => `/proc/self/fd/${fd}`

/** Undefined when it is not, or no longer, a directory. Makes it passable for its owner: a sandbox may have locked it. */
export function openDirectory(path: string | Buffer): number | undefined {
  let fd: number | undefined
  try {
    fd = openSync(path, O_PATH | O_DIRECTORY | O_NOFOLLOW)
    const mode = fstatSync(fd).mode & 0o7777
    if ((mode & 0o700) !== 0o700) chmodSync(itself(fd), (mode & 0o777) | 0o700)
    return fd
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    if (fd !== undefined) return fd
    return undefined
  }
}

export function look(path: string | Buffer): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

export interface Spot {
  /** The open directory that has it; valid during the call only. */
  readonly parent: number
  readonly name: string
  readonly stats: BigIntStats
  /** How many of the components lead to it: fewer than all when a link stands in the way. */
  readonly depth: number
}

/** Calls `act` with what stands at the end of the path, or with the first link on the way; not at all when there is neither. */
export function withSpot<T>(root: number, names: readonly string[], act: (spot: Spot) => T): T | undefined {
  let parent = root
  try {
    for (const [i, name] of names.entries()) {
      const stats = look(at(parent, name))
      if (stats === undefined) return undefined
      if (stats.isSymbolicLink() || i === names.length - 1) return act({ parent, name, stats, depth: i + 1 })
      const next = stats.isDirectory() ? openDirectory(at(parent, name)) : undefined
      if (next === undefined) return undefined
      if (parent !== root) closeSync(parent)
      parent = next
    }
    return undefined
  } finally {
    if (parent !== root) closeSync(parent)
  }
}

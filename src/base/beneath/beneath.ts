/**
 * Looks and acts below a directory that a hostile process changes at the same time (Linux). Each step opens one component
 * without following links, and the next step starts at that descriptor. So no answer is about another directory.
 */
import {
  accessSync,
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
} from 'node:fs'
import { errnoOf } from '../error.ts'
import { O_PATH } from '../kernel/descriptor.ts'
import { absent } from './look-at.ts'

const { O_DIRECTORY, O_NOFOLLOW } = constants

/** A name in an open directory, as a path. Its only link is the kernel's own (`/proc/self/fd`). */
export const at = (fd: number, name: string | Buffer): string | Buffer =>
  typeof name === 'string'
    ? `/proc/self/fd/${fd}/${name}`
    : Buffer.concat([Buffer.from(`/proc/self/fd/${fd}/`), name])

export const itself = (fd: number): string => `/proc/self/fd/${fd}`

/** Undefined when it is not, or no longer, a directory. The descriptor grants no access: see `withAccess`. */
export function openDirectory(path: string | Buffer): number | undefined {
  try {
    return openSync(path, O_PATH | O_DIRECTORY | O_NOFOLLOW)
  } catch (error) {
    return absent(error, path)
  }
}

/**
 * For directories that pen removes or quarantines. Gives the owner full access, because a sandbox may have locked them. With
 * `parent`, a directory of another mount is an error (EXDEV): the user may have mounted it where the sandbox cannot see it.
 */
export function openForRemoval(path: string | Buffer, parent?: number): number | undefined {
  const fd = openDirectory(path)
  if (fd === undefined) return undefined
  try {
    if (parent !== undefined) requireMountOf(parent, fd)
    setMode(fd, (fstatSync(fd).mode & 0o777) | 0o700)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

export function requireMountOf(parent: number, fd: number): void {
  if (mountOf(fd) !== mountOf(parent)) throw Object.assign(new Error('another mount'), { code: 'EXDEV' })
}

export const mountOf = (fd: number): string | undefined =>
  /^mnt_id:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]

/** Mode bits that the owner of a directory needs for an action. */
export const ENTER = 0o100
export const LIST = 0o500
export const CHANGE = 0o300

/**
 * A sandbox may lock a directory (`chmod 000`) against pen, which is the same user. This unlocks it until the returned
 * function restores its mode: modes in the project belong to the user.
 */
export function unlock(dir: number, need: number): () => void {
  if (mayDo(dir, need)) return () => undefined
  const mode = fstatSync(dir).mode & 0o7777
  if (!setMode(dir, mode | need)) return () => undefined
  return () => void setMode(dir, mode)
}

export function withAccess<T>(dir: number, need: number, act: () => T): T {
  const lock = unlock(dir, need)
  try {
    return act()
  } finally {
    lock()
  }
}

/** Asks the kernel, which knows about root and access lists. */
function mayDo(dir: number, need: number): boolean {
  try {
    accessSync(itself(dir), need >> 6)
    return true
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}

/** False when pen may not change it: the next action on it then fails with the kernel's error. */
function setMode(dir: number, mode: number): boolean {
  try {
    if ((fstatSync(dir).mode & 0o7777) !== mode) chmodSync(itself(dir), mode)
    return true
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}

/** Calls `act` while the directories on the way to a path are unlocked, up to the first that is none. */
export function throughLocked<T>(path: string | Buffer, act: () => T): T {
  const enter = (dir: number, [name, ...rest]: readonly Buffer[]): T =>
    withAccess(dir, LIST, () => {
      const fd = name === undefined ? undefined : openDirectory(at(dir, name))
      if (fd === undefined) return act()
      try {
        return enter(fd, rest)
      } finally {
        closeSync(fd)
      }
    })
  const top = openSync('/', O_PATH | O_DIRECTORY)
  try {
    // Bytes as Latin-1, so that a non-UTF-8 name stays as it is.
    const names = Buffer.from(path).toString('latin1').split('/').slice(1, -1)
    return enter(
      top,
      names.map(name => Buffer.from(name, 'latin1')),
    )
  } finally {
    closeSync(top)
  }
}

export interface Spot {
  /** The open directory that contains it, and it itself (O_PATH). Both are valid only during the call. */
  readonly parent: number
  readonly fd: number
  readonly name: string
  readonly stats: BigIntStats
  /** How many components of the path lead to it: fewer than all when it is in the way. */
  readonly depth: number
}

/** Opens one component, itself when it is a link. Undefined ends the walk. */
export type OpenStep = (parent: number, name: string) => number | undefined

export const openItself = (path: string | Buffer): number => openSync(path, O_PATH | O_NOFOLLOW)

/**
 * The walker: one component at a time, each opened by `open` in the directory before it. Calls `act` with the last
 * component, or with the first on the way that is no directory.
 */
export function walk<T>(
  parent: number,
  names: readonly string[],
  open: OpenStep,
  act: (spot: Spot) => T,
  depth = 1,
): T | undefined {
  const name = names[depth - 1]
  const fd = name === undefined ? undefined : open(parent, name)
  if (name === undefined || fd === undefined) return undefined
  try {
    const stats = fstatSync(fd, { bigint: true })
    if (depth === names.length || !stats.isDirectory()) return act({ parent, fd, name, stats, depth })
    return walk(fd, names, open, act, depth + 1)
  } finally {
    closeSync(fd)
  }
}

/**
 * Unlocks each directory on the way. Calls `act` with the last component of the path, or with the first link on the way.
 * It does not call `act` when the path does not exist. Throws `Unseen` when pen may not look.
 */
export const withSpot = <T>(root: number, names: readonly string[], act: (spot: Spot) => T): T | undefined =>
  walk(root, names, openUnlocked, spot =>
    spot.depth === names.length || spot.stats.isSymbolicLink()
      ? withAccess(spot.parent, ENTER, () => act(spot))
      : undefined,
  )

const openUnlocked: OpenStep = (parent, name) =>
  withAccess(parent, ENTER, () => {
    const path = at(parent, name)
    try {
      return openItself(path)
    } catch (error) {
      return absent(error, path)
    }
  })

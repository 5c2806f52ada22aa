/**
 * Opens a path below an open directory, while hostile processes may swap every part of it. `openat2` resolves the path
 * beneath the directory and through no link. Where the call is missing, the walker of beneath.ts does it, with the same
 * result. The descriptor is of a place beneath the directory, or there is none.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { errnoOf } from '../error.ts'
import { copyOf, O_CLOEXEC, O_PATH } from '../kernel/descriptor.ts'
import { cString, systemCall } from '../kernel/system-call.ts'
import { at, itself, mountOf, openItself, walk } from './beneath.ts'
import { absent, Unseen } from './look-at.ts'

const { O_DIRECTORY, O_NOFOLLOW } = constants
const NO_XDEV = 0x01
const NO_MAGICLINKS = 0x02
const NO_SYMLINKS = 0x04
const BENEATH = 0x08

/** The kernel asks for a retry while directories are being renamed. A sandbox that renames all day gets the slow walk. */
const TRIES = 8

/** Whether the path may lead onto another mount than its first directory's. */
export type Mounts = 'same' | 'any'

const namesIn = (path: string): string[] => path.split('/').filter(name => name !== '')

/**
 * An O_PATH descriptor: it can be examined and opened again, but a pipe or a device is not touched. A link at the end of
 * the path is opened itself; a link on the way is an error (ELOOP).
 */
export function openBeneath(root: number, names: readonly string[], mounts: Mounts = 'same'): number {
  const resolve = BENEATH | NO_SYMLINKS | NO_MAGICLINKS | (mounts === 'same' ? NO_XDEV : 0)
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      return openat2(root, names.join('/') || '.', O_PATH | O_NOFOLLOW, resolve)
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'ENOSYS' || errno === 'EPERM' || errno === 'E2BIG') break
      if (errno !== 'EAGAIN') throw error
    }
  }
  return walkBeneath(root, names, mounts)
}

function openat2(dir: number, path: string, flags: number, resolve: number): number {
  // struct open_how { u64 flags, mode, resolve }
  const how = new BigUint64Array([BigInt(flags | O_CLOEXEC), 0n, BigInt(resolve)])
  return systemCall('openat2', dir, cString(path), how, how.byteLength)
}

/** The same for a kernel, or a seccomp filter around pen, that does not have the call. */
export function walkBeneath(root: number, names: readonly string[], mounts: Mounts = 'same'): number {
  const mount = mountOf(root)
  const open = (parent: number, name: string): number => {
    if (name === '..') throw failure('EXDEV')
    const fd = openItself(at(parent, name))
    if (mounts === 'any' || mountOf(fd) === mount) return fd
    closeSync(fd)
    throw failure('EXDEV')
  }
  const found = walk(root, names, open, ({ fd, stats, depth }) => {
    if (depth < names.length) throw failure(stats.isSymbolicLink() ? 'ELOOP' : 'ENOTDIR')
    return copyOf(fd)
  })
  // Without names it is the directory itself.
  return found ?? openSync(itself(root), O_PATH | O_DIRECTORY)
}

function requireDirectory(fd: number): void {
  const stats = fstatSync(fd)
  if (stats.isSymbolicLink()) throw failure('ELOOP')
  if (!stats.isDirectory()) throw failure('ENOTDIR')
}

const failure = (code: string): Error => Object.assign(new Error(code), { code })

/** A directory of the host by its canonical path: a link anywhere in it is an error. */
export function openCanonical(path: string): number {
  const top = openSync('/', O_PATH | O_DIRECTORY)
  try {
    const fd = openBeneath(top, namesIn(path), 'any')
    try {
      requireDirectory(fd)
      return fd
    } catch (error) {
      closeSync(fd)
      throw error
    }
  } finally {
    closeSync(top)
  }
}

/** For the caller to close; undefined when nothing is there, a link is on the way, or the kernel refuses. */
export function tryOpenBeneath(root: number, path: string): number | undefined {
  try {
    return openBeneath(root, namesIn(path), 'any')
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

export interface Found {
  /** Open only during the call; the top of what is mounted there. */
  readonly fd: number
  readonly dev: bigint
  readonly ino: bigint
  readonly kind: 'file' | 'directory' | 'link'
  /** Whether a mount begins here. */
  readonly mountPoint: boolean
}

/** As `findBeneath`. Throws `Unseen` when a directory on the way is locked. */
export function lookBeneath(root: number, path: string): Omit<Found, 'fd'> | undefined {
  const found = findBeneath(root, path, ({ fd, ...seen }) => seen)
  if (found !== undefined) return found
  // The walk gives no reason. It is not absent when the kernel refuses.
  try {
    closeSync(openBeneath(root, namesIn(path), 'any'))
  } catch (error) {
    return absent(error, path)
  }
  throw new Unseen(path, 'EAGAIN')
}

/** Looks at a path in a sandbox's view of the files, across its mounts. Undefined as for `tryOpenBeneath`. */
export function findBeneath<T>(root: number, path: string, act: (found: Found) => T): T | undefined {
  const names = namesIn(path)
  const last = names.pop()
  const parent = last === undefined ? undefined : tryOpenBeneath(root, names.join('/'))
  if (last === undefined || parent === undefined) return undefined
  try {
    const fd = tryOpenBeneath(parent, last)
    if (fd === undefined) return undefined
    try {
      // An error of `act` is the caller's: a mount that fails is not a path that is absent.
      return act(describe(fd, parent))
    } finally {
      closeSync(fd)
    }
  } finally {
    closeSync(parent)
  }
}

function describe(fd: number, parent: number): Found {
  const stats = fstatSync(fd, { bigint: true })
  return {
    fd,
    dev: stats.dev,
    ino: stats.ino,
    kind: stats.isSymbolicLink() ? 'link' : stats.isDirectory() ? 'directory' : 'file',
    mountPoint: mountOf(fd) !== mountOf(parent),
  }
}

/** Whether the descriptor is open at exactly this file or directory. */
export function isAt(fd: number, { dev, ino }: { readonly dev: bigint; readonly ino: bigint }): boolean {
  const found = fstatSync(fd, { bigint: true })
  return found.dev === dev && found.ino === ino
}

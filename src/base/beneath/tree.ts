/**
 * Copies and disarms trees that a sandbox made: by descriptor, through no link, within a budget. These are generators, so
 * that a large tree is processed in slices.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  writeFileSync,
} from 'node:fs'
import { errnoOf } from '../error.ts'
import { writeAll } from '../write-all.ts'
import { at, itself, openForRemoval, openItself, requireMountOf } from './beneath.ts'
import { directoryEntries } from './directory-entries.ts'
import { lookAt } from './look-at.ts'

/** Counts down. A walk stops when one of the two is used up. */
export interface Budget {
  entries: number
  bytes: number
  /** Set when a copy found no space on the disk. */
  isFull?: boolean
}

type Name = string | Buffer
type Walk = Generator<void, boolean, void>

const MAX_DEPTH = 64
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** Removes exec bits and the access of other users. True when the whole tree was seen within the budget. */
export function* disarmTree(parent: number, name: Name, budget: Budget, depth = 0): Walk {
  yield
  if (budget.entries-- <= 0) return false
  const stats = lookAt(at(parent, name))
  if (stats === undefined) return true
  if (stats.isDirectory())
    return yield* eachChild(parent, name, depth, (dir, child) => disarmTree(dir, child, budget, depth + 1))
  budget.bytes -= Number(stats.blocks) * 512
  // A file with another hard link may be the user's: its mode stays. Its directory is closed anyway.
  if (stats.isFile() && stats.nlink === 1n) attempt(() => chmodOpened(parent, name))
  return budget.bytes >= 0
}

/** Copies regular files, and each link as a file `NAME.link` with its target. True when everything was copied. */
export function* copyTree(parent: number, name: Name, to: Name, budget: Budget, depth = 0): Walk {
  yield
  if (budget.entries-- <= 0) return false
  const stats = lookAt(at(parent, name))
  if (stats === undefined) return true
  if (stats.isDirectory()) {
    if (!attempt(() => mkdirSync(to, { mode: 0o700 }), budget)) return false
    return yield* eachChild(parent, name, depth, (dir, child) =>
      copyTree(dir, child, below(to, child), budget, depth + 1),
    )
  }
  if (stats.isSymbolicLink())
    return attempt(
      () =>
        writeFileSync(below(to, Buffer.from('.link'), ''), readlinkSync(at(parent, name)), {
          flag: 'wx',
          mode: 0o600,
        }),
      budget,
    )
  return stats.isFile() && (yield* copyFile(at(parent, name), to, budget))
}

function* copyFile(from: Name, to: Name, budget: Budget): Walk {
  let source: number | undefined
  let target: number | undefined
  try {
    source = openSync(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    if (!fstatSync(source).isFile()) return false
    target = openSync(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    const chunk = Buffer.allocUnsafe(65_536)
    for (;;) {
      const n = readSync(source, chunk, 0, chunk.length, null)
      if (n === 0) return true
      budget.bytes -= n
      if (budget.bytes < 0) return false
      writeAll(target, chunk.subarray(0, n))
      yield
    }
  } catch (error) {
    return failed(error, budget)
  } finally {
    if (source !== undefined) closeSync(source)
    if (target !== undefined) closeSync(target)
  }
}

function* eachChild(
  parent: number,
  name: Name,
  depth: number,
  visit: (dir: number, child: Buffer) => Walk,
): Walk {
  let dir: number | undefined
  try {
    dir = depth < MAX_DEPTH ? openForRemoval(at(parent, name), parent) : undefined
    if (dir === undefined) return false
    let all = true
    for (const { name: child } of directoryEntries(dir)) all = (yield* visit(dir, child)) && all
    return all
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  } finally {
    if (dir !== undefined) closeSync(dir)
  }
}

// Opened first: a link that replaces the file is then not followed.
function chmodOpened(parent: number, name: Name): void {
  const fd = openItself(at(parent, name))
  try {
    requireMountOf(parent, fd)
    if (fstatSync(fd).isFile()) chmodSync(itself(fd), 0o600)
  } finally {
    closeSync(fd)
  }
}

const below = (path: Name, child: Buffer, slash = '/'): Buffer =>
  Buffer.concat([typeof path === 'string' ? Buffer.from(path) : path, Buffer.from(slash), child])

function attempt(act: () => void, budget?: Budget): boolean {
  try {
    act()
    return true
  } catch (error) {
    return failed(error, budget)
  }
}

export const isNoSpace = (errno: string | undefined): boolean => errno === 'ENOSPC' || errno === 'EDQUOT'

function failed(error: unknown, budget: Budget | undefined): false {
  const errno = errnoOf(error)
  if (errno === undefined) throw error
  if (budget !== undefined && isNoSpace(errno)) budget.isFull = true
  return false
}

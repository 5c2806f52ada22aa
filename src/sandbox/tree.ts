/** Copying, disarming and removing trees that a sandbox made: by descriptor, never through a link, within a budget. */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { at, itself, look, openDirectory } from './beneath.ts'

/** Counts down; a walk stops where either is used up. */
export interface Budget {
  entries: number
  bytes: number
}

type Name = string | Buffer

const MAX_DEPTH = 64
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** True when nothing is left of it. */
export function removeTree(parent: number, name: Name, budget: Budget, depth = 0): boolean {
  if (budget.entries-- <= 0) return false
  const stats = look(at(parent, name))
  if (stats === undefined) return true
  if (!stats.isDirectory()) return attempt(() => unlinkSync(at(parent, name)))
  const all = eachChild(parent, name, depth, (dir, child) => removeTree(dir, child, budget, depth + 1))
  return all && attempt(() => rmdirSync(at(parent, name)))
}

/** Takes exec bits and other users' access from it. True when the whole tree was seen and fits the budget. */
export function disarmTree(parent: number, name: Name, budget: Budget, depth = 0): boolean {
  if (budget.entries-- <= 0) return false
  const stats = look(at(parent, name))
  if (stats === undefined) return true
  if (stats.isDirectory())
    return eachChild(parent, name, depth, (dir, child) => disarmTree(dir, child, budget, depth + 1))
  budget.bytes -= Number(stats.blocks) * 512
  // A file with a second name may be one of the user's: its mode is not ours to change, and the directory is closed anyway.
  if (stats.isFile() && stats.nlink === 1n) attempt(() => chmodOpened(at(parent, name)))
  return budget.bytes >= 0
}

/** Regular files as they are, links as `NAME.link` with their text, nothing else. True when all of it was copied. */
export function copyTree(parent: number, name: Name, to: Name, budget: Budget, depth = 0): boolean {
  if (budget.entries-- <= 0) return false
  const stats = look(at(parent, name))
  if (stats === undefined) return true
  if (stats.isDirectory()) {
    if (!attempt(() => mkdirSync(to, { mode: 0o700 }))) return false
    return eachChild(parent, name, depth, (dir, child) =>
      copyTree(dir, child, below(to, child), budget, depth + 1),
    )
  }
  if (stats.isSymbolicLink())
    return attempt(() =>
      writeFileSync(below(to, Buffer.from('.link'), ''), readlinkSync(at(parent, name)), {
        flag: 'wx',
        mode: 0o600,
      }),
    )
  return stats.isFile() && copyFile(at(parent, name), to, budget)
}

function copyFile(from: Name, to: Name, budget: Budget): boolean {
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
      for (let done = 0; done < n; ) done += writeSync(target, chunk, done, n - done)
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  } finally {
    if (source !== undefined) closeSync(source)
    if (target !== undefined) closeSync(target)
  }
}

function eachChild(
  parent: number,
  name: Name,
  depth: number,
  visit: (dir: number, child: Buffer) => boolean,
): boolean {
  const dir = depth < MAX_DEPTH ? openDirectory(at(parent, name)) : undefined
  if (dir === undefined) return false
  try {
    let all = true
    for (const child of readdirSync(itself(dir), { encoding: 'buffer' })) all = visit(dir, child) && all
    return all
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  } finally {
    closeSync(dir)
  }
}

// Opened first, so that a link put in its place meanwhile is not followed.
function chmodOpened(path: Name): void {
  const fd = openSync(path, 0x20_0000 | O_NOFOLLOW)
  try {
    if (fstatSync(fd).isFile()) chmodSync(itself(fd), 0o600)
  } finally {
    closeSync(fd)
  }
}

const below = (path: Name, child: Buffer, slash = '/'): Buffer =>
  Buffer.concat([typeof path === 'string' ? Buffer.from(path) : path, Buffer.from(slash), child])

function attempt(act: () => void): boolean {
  try {
    act()
    return true
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}

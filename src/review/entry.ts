/** One name in the project or in a layer, as it stands now. Opened and read without following a link. */
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs'
import { at, unlock } from '../base/beneath/beneath.ts'
import { lookAt } from '../base/beneath/look-at.ts'
import { errnoOf } from '../base/error.ts'
import { digestContent } from './digest.ts'

export type EntryType = 'file' | 'directory' | 'link' | 'other'

export interface Entry {
  readonly type: EntryType
  /** Permission bits. Zero for a link. */
  readonly mode: number
  readonly size: number
  /** The digest of a file, the target of a link in latin1. Undefined where it was not needed. */
  readonly content: string | undefined
  readonly mtimeNs: bigint
  readonly uid: number
  readonly gid: number
  /** Together these change with every edit. No program can set the ctime. */
  readonly ino: bigint
  readonly ctimeNs: bigint
}

/** Bits that cross. Not setuid, setgid and sticky. */
export const PERMISSIONS = 0o777

/** A name in latin1, as the kernel takes it. */
export const nameBytes = (name: string): string | Buffer =>
  /[\x80-\xff]/.test(name) ? Buffer.from(name, 'latin1') : name

/** A path of a change, below a directory whose own path is text. */
export const pathBelow = (top: string, path: string): Buffer =>
  Buffer.concat([Buffer.from(`${top}/`), Buffer.from(path, 'latin1')])

export function describe(stats: BigIntStats, content?: string): Entry {
  const type: EntryType = stats.isFile()
    ? 'file'
    : stats.isDirectory()
      ? 'directory'
      : stats.isSymbolicLink()
        ? 'link'
        : 'other'
  return {
    type,
    mode: type === 'link' ? 0 : Number(stats.mode) & PERMISSIONS,
    size: Number(stats.size),
    content,
    mtimeNs: stats.mtimeNs,
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    ino: stats.ino,
    ctimeNs: stats.ctimeNs,
  }
}

/** Undefined when the name does not exist. Throws `Unseen` when pen may not look. The content is not read. */
export function lookInto(dir: number, name: string): Entry | undefined {
  const stats = lookAt(at(dir, nameBytes(name)))
  return stats === undefined ? undefined : describe(stats)
}

/** The content of an entry that was just looked at. A name that was replaced meanwhile is read as it is now. */
export function withContent(dir: number, name: string, entry: Entry): Entry {
  if (entry.type === 'link') return { ...entry, content: readlinkSync(at(dir, nameBytes(name)), 'latin1') }
  if (entry.type !== 'file') return entry
  return withFile(dir, name, (fd, stats) => ({
    ...describe(stats, digestContent(fd, Number(stats.size))),
    mode: entry.mode,
  }))
}

/** A sandbox may replace the file with a pipe at any time: opening does not block, and only a regular file is read. */
export function withFile<T>(dir: number, name: string, act: (fd: number, stats: BigIntStats) => T): T {
  const fd = openToRead(dir, name)
  try {
    const stats = fstatSync(fd, { bigint: true })
    if (!stats.isFile()) throw Object.assign(new Error('no regular file'), { code: 'EINVAL' })
    return act(fd, stats)
  } finally {
    closeSync(fd)
  }
}

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants

const openToRead = (dir: number, name: string): number =>
  openSync(at(dir, nameBytes(name)), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

const READ = 0o400

/** In a layer, a sandbox may have locked a file (`chmod 000`). Its mode is back when this returns. */
export function unlocked<T>(dir: number, name: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error
  }
  const fd = openSync(at(dir, nameBytes(name)), constants.O_NOFOLLOW | 0o10000000)
  const lock = unlock(fd, READ)
  try {
    return act()
  } finally {
    lock()
    closeSync(fd)
  }
}

/** Equal for the user: times do not count. Content only where both were read. */
export const isSame = (one: Entry, other: Entry): boolean =>
  one.type === other.type && one.mode === other.mode && hasSameContent(one, other)

export const hasSameContent = (one: Entry, other: Entry): boolean =>
  one.type === other.type &&
  (one.type === 'directory' || (one.size === other.size && one.content === other.content))

/** The parts by which an entry is known after it was moved. */
export type Known = Pick<Entry, 'type' | 'mode' | 'size' | 'ino' | 'mtimeNs'>

/** Whether it is the same file and was not edited, also after a rename, which renews the ctime. */
export const isUntouched = (before: Known, now: Known): boolean =>
  before.type === now.type &&
  before.ino === now.ino &&
  before.mode === now.mode &&
  (before.type === 'directory' || (before.size === now.size && before.mtimeNs === now.mtimeNs))

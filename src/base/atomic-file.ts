import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
} from 'node:fs'
import { errnoOf, PenError } from './error.ts'
import { basename, dirname, join } from './posix-path.ts'
import { writeAll } from './write-all.ts'

export interface WriteOptions {
  readonly mode?: number
  /** Called right before the rename: true leaves the old file in place. */
  readonly unless?: () => boolean
  /** The name for messages, when the path leads through an open directory. */
  readonly name?: string
  /** False skips fsync, for caches: after a power failure the file may be broken, and its reader must cope. */
  readonly durable?: boolean
  /** The owner of the new file, when that is another user. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined
}

/**
 * Replaces a file: at any moment and after any crash, readers of `path` see all old bytes or all new ones.
 * A symbolic link at `path` is replaced, not followed: its target may belong to another user.
 * Returns whether the file was written.
 */
export function writeFileAtomically(
  path: string,
  bytes: Uint8Array | string,
  { mode = 0o600, unless, name = path, durable = true, owner }: WriteOptions = {},
): boolean {
  const directory = dirname(path)
  const temporary = `${temporaryPrefix(path)}${crypto.randomUUID()}.tmp`
  try {
    writeNewFile(temporary, typeof bytes === 'string' ? Buffer.from(bytes) : bytes, { mode, durable, owner })
    if (unless?.() === true) {
      removeQuietly(temporary)
      return false
    }
    renameSync(temporary, path)
  } catch (error) {
    removeQuietly(temporary)
    throw notWritten(name, error)
  }
  if (durable) syncDirectory(directory, name)
  return true
}

const temporaryPrefix = (path: string): string => join(dirname(path), `.${basename(path).slice(0, 128)}.`)

/** Removes files of killed writers. The caller holds the lock of `path`, or a living writer would lose its file. */
export function removeLeftovers(path: string): void {
  const prefix = basename(temporaryPrefix(path))
  for (const name of readdirSync(dirname(path)))
    if (name.startsWith(prefix) && LEFTOVER.test(name.slice(prefix.length)))
      removeQuietly(join(dirname(path), name))
}

const LEFTOVER = /^[0-9a-f-]{36}\.tmp$/

function writeNewFile(
  path: string,
  bytes: Uint8Array,
  { mode, durable, owner }: { mode: number; durable: boolean; owner: WriteOptions['owner'] },
): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode & 0o600)
  try {
    writeAll(fd, bytes)
    if (owner !== undefined) fchownSync(fd, owner.uid, owner.gid)
    fchmodSync(fd, mode)
    if (durable) fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Without this, a power failure may lose the rename, though never leave half of it. */
function syncDirectory(directory: string, path: string): void {
  try {
    const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    // A directory that pen may not list, or a file system without directory sync: the rename is still done.
    if (['EACCES', 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) return
    throw notWritten(path, error)
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // The file was never made, or the directory is read-only: the caller throws the first error.
  }
}

const CURES: Readonly<Record<string, string>> = {
  ENOSPC: 'free space on that file system, then repeat the command; the file is as it was',
  EDQUOT: 'your disk quota is used up: free space, then repeat the command; the file is as it was',
  EFBIG: 'raise the file size limit (ulimit -f), then repeat the command; the file is as it was',
  EROFS: 'the file system is mounted read-only: remount it, or keep the file elsewhere',
  EACCES: 'make the directory writable for you',
  EPERM: 'make the directory writable for you',
  ENOENT: 'create the directory first',
  ENOTDIR: 'a part of the path is not a directory: move that file away',
  EISDIR: 'a directory stands in the place of the file: move it away',
  ENAMETOOLONG: 'choose a shorter name',
}

function notWritten(path: string, error: unknown): PenError {
  const errno = errnoOf(error)
  const hint = CURES[errno ?? '']
  return new PenError('STATE', {
    what: `could not write ${path}${errno ? ` (${errno})` : ''}`,
    ...(hint !== undefined && { hint }),
    cause: error,
  })
}

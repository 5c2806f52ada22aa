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
  writeSync,
} from 'node:fs'
import { errnoOf, PenError } from './error.ts'
import { basename, dirname, join } from './posix-path.ts'

export interface WriteOptions {
  readonly mode?: number
  /** Asked when everything is ready, in the last moment: true leaves the file as it is. */
  readonly unless?: () => boolean
  /** What to call it, where the path leads through an open directory and would tell a person nothing. */
  readonly name?: string
  /** False for what is worth nothing after the machine's end, or is found again: a reader has to live with a broken one. */
  readonly durable?: boolean
  /** Whose it becomes, when that is not us. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined
}

/**
 * Whoever reads `path`, at any moment and after any crash, sees the old bytes or the new ones, complete.
 * A symbolic link at `path` is replaced, not followed: what it points to may belong to somebody else.
 * Returns whether it was written.
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

/** What a killed writer left. Only for whoever holds the lock of `path`: a living writer's file would go too. */
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
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
    if (owner !== undefined) fchownSync(fd, owner.uid, owner.gid)
    fchmodSync(fd, mode)
    if (durable) fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Without this the rename itself may be lost with the power, though never halfway. */
function syncDirectory(directory: string, path: string): void {
  try {
    const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    // A directory that may be written but not listed, and file systems that know no directory sync: the rename stands.
    if (['EACCES', 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) return
    throw notWritten(path, error)
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was never made, or the directory is beyond writing: the first error is the one to tell.
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

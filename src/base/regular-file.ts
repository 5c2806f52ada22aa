import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { errnoOf, errnoText, PenError } from './error.ts'

export interface ReadLimits {
  readonly maxBytes: number
  /** For files that grant something: another user who can write them could grant in the user's name. */
  readonly owner?: 'self-or-root'
  /** The name for messages, when the path leads through an open directory. */
  readonly name?: string
}

/**
 * Reads a file that may be hostile: an agent can replace a project's documents by a link, an endless pipe, a device or a
 * terabyte of holes. The file is opened once, and checked and read by that descriptor. Returns undefined when there is
 * no such file.
 */
export function readRegularFile(from: string, limits: ReadLimits): Buffer | undefined {
  const path = limits.name ?? from
  const fd = open(from, path)
  if (fd === undefined) return undefined
  try {
    const stats = fstatSync(fd)
    check(path, stats, limits)
    return readAtMost(fd, path, limits.maxBytes, stats.size)
  } catch (error) {
    if (error instanceof PenError) throw error
    throw refused(path, `could not be read (${errnoText(error)})`, 'check the file and its disk', error)
  } finally {
    closeSync(fd)
  }
}

function open(from: string, path: string): number | undefined {
  if (from.includes('\0')) throw refused(path, 'has a NUL byte in its name', 'choose another name')
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  try {
    // The runtime sets close-on-exec. O_NONBLOCK: a pipe without a writer must not block pen.
    return openSync(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'ENOENT') return undefined
    if (errno === 'ELOOP' || errno === 'EMLINK')
      throw refused(path, 'is a symbolic link', 'put a regular file in its place', error)
    if (errno === 'ENXIO')
      throw refused(path, 'is not a regular file', 'put a regular file in its place', error)
    const hint =
      errno === 'EACCES' ? 'make it readable for you (chmod u+r)' : 'check the path and its directories'
    throw refused(path, `could not be opened (${errnoText(error)})`, hint, error)
  }
}

function check(path: string, stats: Stats, { maxBytes, owner }: ReadLimits): void {
  if (!stats.isFile())
    throw refused(path, `is ${kindOf(stats)}, not a regular file`, 'put a regular file in its place')
  if (stats.size > maxBytes) throw tooLarge(path, maxBytes)
  if (owner === undefined) return
  const self = process.getuid?.()
  if (stats.uid !== 0 && stats.uid !== self)
    throw refused(
      path,
      `belongs to user ${stats.uid}`,
      'make it your own (chown), after reading what it says',
    )
  if ((stats.mode & 0o002) !== 0)
    throw refused(path, 'may be written by every user', 'run chmod o-w on it, after reading what it says')
}

/** The size may be wrong (growing files, /proc): so one byte more than the limit is requested, and refused if it comes. */
function readAtMost(fd: number, path: string, maxBytes: number, size: number): Buffer {
  const chunks: Buffer[] = []
  let total = 0
  for (;;) {
    // A small file gets a small buffer: a large one costs more than the read. A file that grows gets a large one.
    const room = total === 0 && size > 0 ? size + 1 : 65_536
    const chunk = Buffer.allocUnsafe(Math.min(room, 65_536, maxBytes + 1 - total))
    const n = readSync(fd, chunk, 0, chunk.length, null)
    if (n === 0) return Buffer.concat(chunks, total)
    chunks.push(chunk.subarray(0, n))
    total += n
    if (total > maxBytes) throw tooLarge(path, maxBytes)
  }
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory'
  if (stats.isFIFO()) return 'a pipe'
  if (stats.isSocket()) return 'a socket'
  return 'a device'
}

const tooLarge = (path: string, maxBytes: number): PenError =>
  refused(path, `is larger than ${maxBytes} bytes`, 'make it smaller')

function refused(path: string, what: string, hint: string, cause?: unknown): PenError {
  return new PenError('CONFIG_FILE', { what: `${path} ${what}`, at: path, hint, cause })
}

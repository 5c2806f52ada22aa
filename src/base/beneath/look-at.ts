/**
 * What stands at a path, without following a link. Unknown is never absent: a sandbox that locks a directory (`chmod 000`) would
 * otherwise make pen believe that everything in it is gone.
 */
import { type BigIntStats, lstatSync } from 'node:fs'
import { errnoOf, PenError } from '../error.ts'
import { printable } from '../printable.ts'

/** The kernel did not let pen look. Before a run this stops it; during a run the caller looks again, and tells. */
export class Unseen extends PenError {
  readonly errno: string

  constructor(path: string | Buffer, errno: string) {
    super('PATH_REFUSED', {
      what: `pen cannot look at a path (${errno}), and does not run beside what it cannot look at`,
      at: printable(path.toString(), 1024),
      hint: hintFor(errno),
    })
    this.errno = errno
  }
}

const hintFor = (errno: string): string =>
  errno === 'EACCES'
    ? 'a directory on the way is locked: chmod u+rwx it, or move it out of the project'
    : 'check the file system, or move it out of the project'

/** Links in a circle and a name that no file system takes lead to nothing. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])
const LONGEST_PATH = 4095

/** Undefined only when nothing is there. */
export function lookAt(path: string | Buffer): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    return absent(error, path)
  }
}

/** For a `catch`: returns when the error says that nothing is there, and throws in every other case. */
export function absent(error: unknown, path: string | Buffer): undefined {
  const errno = errnoOf(error)
  if (errno === undefined) throw error
  if (ABSENT.has(errno) || (errno === 'ENAMETOOLONG' && Buffer.byteLength(path) <= LONGEST_PATH))
    return undefined
  throw new Unseen(path, errno)
}

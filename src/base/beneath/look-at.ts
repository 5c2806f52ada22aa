/**
 * Looks at a path without following a link. Unknown is never absent: otherwise a sandbox that locks a directory
 * (`chmod 000`) would make pen believe that everything in it is gone.
 */
import { type BigIntStats, lstatSync } from 'node:fs'
import { errnoOf, PenError } from '../error.ts'
import { printable } from '../printable.ts'

/** The kernel did not let pen look. Before a run, this stops it. During a run, the caller looks again and reports it. */
export class Unseen extends PenError {
  readonly errno: string

  constructor(path: string | Buffer, errno: string) {
    super('PATH_REFUSED', {
      what: `pen cannot look at a path (${errno}), so it cannot protect it`,
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

/** A loop of links counts as absent. So does a name that is too long for every file system. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])
const LONGEST_PATH = 4095

/** Undefined only when the path does not exist. */
export function lookAt(path: string | Buffer): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    return absent(error, path)
  }
}

/** As `lookAt`, and `unseen` where the kernel does not let pen look. */
export function lookOrUnseen(path: string | Buffer): BigIntStats | 'unseen' | undefined {
  try {
    return lookAt(path)
  } catch (error) {
    if (!(error instanceof Unseen)) throw error
    return 'unseen'
  }
}

/** For a `catch`: returns when the error means that the path does not exist, and throws otherwise. */
export function absent(error: unknown, path: string | Buffer): undefined {
  const errno = errnoOf(error)
  if (errno === undefined) throw error
  if (ABSENT.has(errno) || (errno === 'ENAMETOOLONG' && Buffer.byteLength(path) <= LONGEST_PATH))
    return undefined
  throw new Unseen(path, errno)
}

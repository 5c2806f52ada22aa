import { lstatSync, mkdirSync, type Stats } from 'node:fs'
import { errnoOf, errnoText, PenError } from '../base/error.ts'

/** The audit directory of a sandbox, below its state directory. No sandbox ever sees this path. */
export const auditDirectory = (stateDir: string): string => `${stateDir}/audit`

/** Creates the directory, or checks that no other user can change files in it, because that would forge the audit. */
export function ensureDirectory(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
  } catch (error) {
    const errno = errnoOf(error)
    throw new PenError('STATE', {
      what: `could not create the audit directory ${dir} (${errnoText(error)})`,
      hint:
        errno === 'EEXIST' || errno === 'ENOTDIR'
          ? `another file is in its place; move it: mv ${dir} ${dir}.old`
          : 'check the disk and the parent directory; pen runs nothing without an audit',
      cause: error,
    })
  }
  checkDirectory(dir)
}

/** False when the directory does not exist yet. */
export function checkDirectory(dir: string): boolean {
  let stats: Stats
  try {
    stats = lstatSync(dir)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw new PenError('STATE', {
      what: `cannot access the audit directory ${dir} (${errnoText(error)})`,
      hint: 'check the permissions of its parent directories',
      cause: error,
    })
  }
  const problem = problemOf(stats)
  if (problem === undefined) return true
  throw new PenError('STATE', { what: `the audit directory ${dir} ${problem[0]}`, hint: problem[1] })
}

function problemOf(stats: Stats): readonly [what: string, hint: string] | undefined {
  if (stats.isSymbolicLink())
    return ['is a symbolic link', 'remove the link; pen creates the directory itself']
  if (!stats.isDirectory())
    return ['is not a directory', 'move the file away; pen creates the directory itself']
  if (stats.uid !== process.geteuid?.())
    return [`belongs to user ${stats.uid}`, 'move it away; pen creates a new one']
  if ((stats.mode & 0o022) !== 0)
    return ['is writable by other users', 'check its files, then run chmod go-w on it']
  return undefined
}

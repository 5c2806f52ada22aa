import { lstatSync, mkdirSync, type Stats } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'

/** Where a sandbox's audit lies, below its state directory. No sandbox ever sees this path. */
export const auditDirectory = (stateDir: string): string => `${stateDir}/audit`

/**
 * Makes the directory, or makes sure that nobody else can put, replace or remove files in it: whoever could would
 * write the user's history.
 */
export function ensureDirectory(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
  } catch (error) {
    const errno = errnoOf(error)
    throw new PenError('STATE', {
      what: `could not make the audit directory ${dir} (${errno ?? 'unknown error'})`,
      hint:
        errno === 'EEXIST' || errno === 'ENOTDIR'
          ? 'something else stands in its place: move it away'
          : 'check the disk and the directory above; nothing runs without an audit',
      cause: error,
    })
  }
  checkDirectory(dir)
}

/** False when there is none yet. */
export function checkDirectory(dir: string): boolean {
  let stats: Stats
  try {
    stats = lstatSync(dir)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw new PenError('STATE', {
      what: `the audit directory ${dir} cannot be looked at (${errnoOf(error) ?? 'unknown error'})`,
      hint: 'check the directories above it',
      cause: error,
    })
  }
  const problem = problemOf(stats)
  if (problem === undefined) return true
  throw new PenError('STATE', { what: `the audit directory ${dir} ${problem[0]}`, hint: problem[1] })
}

function problemOf(stats: Stats): readonly [what: string, hint: string] | undefined {
  if (stats.isSymbolicLink()) return ['is a symbolic link', 'remove the link; pen makes the directory itself']
  if (!stats.isDirectory()) return ['is not a directory', 'move away what stands in its place']
  if (stats.uid !== process.geteuid?.())
    return [`belongs to user ${stats.uid}`, 'move it away; pen makes one of your own']
  if ((stats.mode & 0o022) !== 0)
    return ['may be written by other users', 'run chmod go-w on it, after a look at who was there']
  return undefined
}

/** The error for a program that pen cannot run: it is absent, or pen may not trust it. */
import { readFileSync, statSync } from 'node:fs'
import { PenError } from './error.ts'
import { TRUSTED_DIRECTORIES, type TrustedDirectory } from './find-tool.ts'

/** `fix` is the hint when the program is absent. */
export function missingTool(
  name: string,
  fix: string,
  directories: readonly TrustedDirectory[] = TRUSTED_DIRECTORIES,
): PenError {
  const there = directories.map(({ path }) => `${path}/${name}`).find(isProgram)
  if (there === undefined)
    return new PenError('MISSING_TOOL', {
      what: `${name} is not installed, or not in a directory that only root can write`,
      hint: fix,
    })
  if (!isRootKnown())
    return new PenError('MISSING_TOOL', {
      what: `${there} exists, but pen runs in a user namespace without root, and cannot see that it belongs to root`,
      at: '/proc/self/uid_map',
      hint: 'start pen outside of the sandbox that it runs in',
    })
  return new PenError('MISSING_TOOL', {
    what: `${there} exists, but users other than root can replace or change it`,
    hint: `chown root ${there} && chmod go-w ${there}, and the same for every directory above it`,
  })
}

function isProgram(path: string): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isFile() === true && (stats.mode & 0o111) !== 0
  } catch {
    return false
  }
}

/** Each line of the map: the first id inside, the first outside, the count. */
function isRootKnown(): boolean {
  try {
    const lines = readFileSync('/proc/self/uid_map', 'utf8').trim().split('\n')
    return lines.some(line => line.trim().split(/ +/)[0] === '0')
  } catch {
    return true
  }
}

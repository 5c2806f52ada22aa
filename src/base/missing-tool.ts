/** Why a program of the host is none that pen may run: it is not there, or it is, and pen may not trust it. */
import { readFileSync, statSync } from 'node:fs'
import { PenError } from './error.ts'
import { TRUSTED_DIRECTORIES, type TrustedDirectory } from './find-tool.ts'

/** `fix` is for one that is not there. */
export function missingTool(
  name: string,
  fix: string,
  directories: readonly TrustedDirectory[] = TRUSTED_DIRECTORIES,
): PenError {
  const there = directories.map(({ path }) => `${path}/${name}`).find(isProgram)
  if (there === undefined)
    return new PenError('MISSING_TOOL', {
      what: `${name} is not installed, or not where only root could have put it`,
      hint: fix,
    })
  if (!isRootKnown())
    return new PenError('MISSING_TOOL', {
      what: `${there} is there, but nothing belongs to root here: pen was started in a user namespace in which root has no number`,
      at: '/proc/self/uid_map',
      hint: 'another sandbox is around it, as bubblewrap makes them: start pen outside of that',
    })
  return new PenError('MISSING_TOOL', {
    what: `${there} is there, but others than root could have put or changed it`,
    hint: 'make it root’s own, with all directories above it, and writable for nobody else',
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

/** Each line of the map: the first number inside, the first outside, how many. */
function isRootKnown(): boolean {
  try {
    const lines = readFileSync('/proc/self/uid_map', 'utf8').trim().split('\n')
    return lines.some(line => line.trim().split(/ +/)[0] === '0')
  } catch {
    return true
  }
}

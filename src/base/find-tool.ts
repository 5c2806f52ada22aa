import { readFileSync, realpathSync, type Stats, statSync } from 'node:fs'
import { PenError } from './error.ts'

export interface TrustedDirectory {
  readonly path: string
  /** Who may own the programs in it. Programs of Homebrew belong to the user. */
  readonly owner: 'root' | 'root-or-self'
}

/** Never $PATH: a project's node_modules/.bin or .envrc may have put its own `bwrap` first. */
export const TRUSTED_DIRECTORIES: readonly TrustedDirectory[] = [
  { path: '/usr/local/sbin', owner: 'root' },
  { path: '/usr/local/bin', owner: 'root' },
  { path: '/usr/sbin', owner: 'root' },
  { path: '/usr/bin', owner: 'root' },
  { path: '/sbin', owner: 'root' },
  { path: '/bin', owner: 'root' },
  { path: '/run/current-system/sw/bin', owner: 'root' },
  { path: '/opt/homebrew/bin', owner: 'root-or-self' },
  { path: '/home/linuxbrew/.linuxbrew/bin', owner: 'root-or-self' },
]

/** The real, absolute path of a program of the host that pen may run, or undefined. */
export function findTool(
  name: string,
  directories: readonly TrustedDirectory[] = TRUSTED_DIRECTORIES,
): string | undefined {
  if (!/^[A-Za-z0-9][A-Za-z0-9._+-]*$/.test(name)) return undefined
  for (const { path, owner } of directories) {
    const program = trustedProgram(`${path}/${name}`, owner)
    if (program !== undefined) return program
  }
  return undefined
}

function trustedProgram(candidate: string, owner: TrustedDirectory['owner']): string | undefined {
  try {
    // Checked first: most directories lack the tool, and creating an error object is the slowest part.
    if (statSync(candidate, { throwIfNoEntry: false }) === undefined) return undefined
    const program = realpathSync.native(candidate)
    const stats = statSync(program)
    if (!stats.isFile() || (stats.mode & 0o111) === 0) return undefined
    return isKept(program, stats, owner) ? program : undefined
  } catch {
    // Absent, dangling or unreadable: skip it.
    return undefined
  }
}

/** Only its owner can change the file, or swap it by renaming a directory above it. */
function isKept(program: string, stats: Stats, owner: TrustedDirectory['owner']): boolean {
  const self = process.getuid?.()
  const fits = ({ uid, mode }: Stats, sticky: boolean): boolean =>
    (uid === 0 || (owner === 'root-or-self' && uid === self)) && ((mode & 0o002) === 0 || sticky)
  if (!fits(stats, false)) return false
  for (let path = program; path !== '/'; ) {
    path = path.slice(0, path.lastIndexOf('/')) || '/'
    const directory = statSync(path)
    if (!fits(directory, (directory.mode & 0o1000) !== 0)) return false
  }
  return true
}

/** The error for a program that pen cannot run: it is absent, or pen may not trust it. `fix` is the hint for the first. */
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

import { realpathSync, type Stats, statSync } from 'node:fs'

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

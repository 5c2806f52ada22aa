import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { dirname, resolve } from '../base/posix-path.ts'
import type { HostPath, Located, PathKind } from '../policy/files/path.ts'

/** The kernel's own limit. */
const MAX_LINKS = 40

/**
 * The real path and its file type. For an absent or unreachable path: the real path of its nearest ancestor, plus the rest.
 * A dangling link counts as a link: the agent may have made it, and may create the target next.
 */
export function locate(path: string, links = 0): Located {
  let rest = ''
  let missing: PathKind = 'absent'
  for (let at = path; ; at = dirname(at)) {
    try {
      const real = realpathSync.native(at)
      const found = rest === '' ? real : `${real === '/' ? '' : real}${rest}`
      return { real: found, kind: rest === '' ? kindOf(real) : missing }
    } catch (error) {
      const errno = errnoOf(error)
      if (errno !== 'ENOENT' && errno !== 'ENOTDIR' && errno !== 'EACCES')
        throw new PenError('PATH_REFUSED', {
          what: 'a path cannot be resolved',
          at: path,
          hint: errno === 'ELOOP' ? 'its links form a loop: remove one of them' : String(errno),
          cause: error,
        })
      if (at === '/')
        throw new PenError('PATH_REFUSED', {
          what: 'the root directory cannot be read',
          at: path,
          cause: error,
        })
      const target = linkAt(at)
      if (target !== undefined) return locate(`${target}${rest}`, countLink(links, path))
      // A component that may not be entered hides whether the rest is there.
      missing = errno === 'EACCES' ? 'unreachable' : 'absent'
      rest = `/${at.slice(at.lastIndexOf('/') + 1)}${rest}`
    }
  }
}

/** The target of a dangling link, relative to the real directory of the link. */
function linkAt(path: string): string | undefined {
  try {
    return resolve(realpathSync.native(dirname(path)), readlinkSync(path))
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

function countLink(links: number, path: string): number {
  if (links < MAX_LINKS) return links + 1
  throw new PenError('PATH_REFUSED', {
    what: 'a path has too many links',
    at: path,
    hint: 'write the real path',
  })
}

function kindOf(real: string): PathKind {
  const stat = lstatSync(real, { throwIfNoEntry: false })
  if (stat === undefined) return 'absent'
  return stat.isFile() ? 'file' : stat.isDirectory() ? 'directory' : 'other'
}

const HOME_IS: Partial<Record<PathKind, string>> = {
  absent: 'does not exist',
  unreachable: 'is in a directory that you may not enter',
}

/** The user's home. A relative or missing one would put pen's state where the project can write. */
export function findHome(): HostPath {
  // Loading node:os is slow, so it is loaded only without HOME.
  const home = process.env['HOME'] ?? process.getBuiltinModule('node:os').userInfo().homedir
  if (!home.startsWith('/') || home.includes('\0') || home.includes('\n'))
    throw new PenError('STATE', {
      what: home === '' ? 'HOME is empty' : 'HOME is not an absolute path',
      at: 'HOME',
      hint: 'set HOME to your home directory: export HOME=$(getent passwd "$(id -un)" | cut -d: -f6)',
    })
  const { real, kind } = locate(home)
  if (kind !== 'directory')
    throw new PenError('STATE', {
      what: `HOME ${HOME_IS[kind] ?? 'is not a directory'}`,
      at: home,
      hint: 'create it, or set HOME to your home directory',
    })
  return real as HostPath
}

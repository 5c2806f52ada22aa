import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { dirname, resolve } from '../base/posix-path.ts'
import type { HostPath, Located, PathKind } from '../policy/files/path.ts'

/** As many links as the kernel follows. */
const MAX_LINKS = 40

/**
 * Where a path really is, and what is there. For an absent one: its nearest real ancestor, and the rest as written.
 * A link whose target is absent is still a link: the agent may have made it, and may make the target next.
 */
export function locate(path: string, links = 0): Located {
  let rest = ''
  for (let at = path; ; at = dirname(at)) {
    try {
      const real = realpathSync.native(at)
      const found = rest === '' ? real : `${real === '/' ? '' : real}${rest}`
      return { real: found, kind: rest === '' ? kindOf(real) : 'absent' }
    } catch (error) {
      const errno = errnoOf(error)
      if (errno !== 'ENOENT' && errno !== 'ENOTDIR' && errno !== 'EACCES')
        throw new PenError('PATH_REFUSED', {
          what: 'a path cannot be resolved',
          at: path,
          hint: errno === 'ELOOP' ? 'its links lead in a circle: remove one of them' : String(errno),
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
      rest = `/${at.slice(at.lastIndexOf('/') + 1)}${rest}`
    }
  }
}

/** Where a link that leads nowhere points, from the real directory that it stands in. */
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
    hint: 'name the place itself',
  })
}

function kindOf(real: string): PathKind {
  const stat = lstatSync(real, { throwIfNoEntry: false })
  if (stat === undefined) return 'absent'
  return stat.isFile() ? 'file' : stat.isDirectory() ? 'directory' : 'other'
}

/** The user's home. A relative or missing one would put pen's state where the project can write. */
export function findHome(): HostPath {
  // node:os takes longer to load than the question is worth: only whoever has no HOME pays for it.
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
      what: kind === 'absent' ? 'HOME does not exist' : 'HOME is not a directory',
      at: home,
      hint: 'create it, or set HOME to your home directory',
    })
  return real as HostPath
}

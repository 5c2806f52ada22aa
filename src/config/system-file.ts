import { readdirSync, realpathSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { isWithin } from '../policy/path.ts'

const MAX_BYTES = 1 << 20

/**
 * Reads a configuration file of the user or the system, or undefined when there is none. Such a file may be a link
 * (people keep their dot files elsewhere), but not to where the sandbox may write, as in the workspace: what the agent can write
 * grants nothing.
 */
export function readSystemFile(path: string, writable: readonly string[]): string | undefined {
  const real = realPath(path)
  if (real === undefined) return undefined
  const place = writable.find(directory => isWithin(real, realPath(directory) ?? directory))
  if (place !== undefined)
    throw new PenError('GROUP', {
      what: `${path} lies in ${printable(place)}, where the sandbox could change it`,
      at: path,
      hint: 'keep it elsewhere, or allow the hosts with pen allow instead of the group',
    })
  return readRegularFile(real, { maxBytes: MAX_BYTES, owner: 'self-or-root' })?.toString('utf8')
}

/** The names in a directory, in order; none when there is no such directory. */
export function listSystemDirectory(path: string): string[] {
  try {
    return readdirSync(path).sort()
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw new PenError('GROUP', {
      what: `${path} could not be read (${errnoOf(error) ?? 'unknown error'})`,
      at: path,
      hint: 'make it readable for you, or allow the hosts with pen allow',
      cause: error,
    })
  }
}

const isAbsent = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')

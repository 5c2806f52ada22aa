import { readdirSync, realpathSync } from 'node:fs'
import { isAbsolute, relative } from 'node:path'
import { errnoOf, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'

const MAX_BYTES = 1 << 20

/**
 * Reads a configuration file of the user or the system, or undefined when there is none. Such a file may be a link
 * (people keep their dot files elsewhere), but not into the workspace: what the agent can write grants nothing.
 */
export function readSystemFile(path: string, workspace: string): string | undefined {
  const real = realPath(path)
  if (real === undefined) return undefined
  if (isWithin(real, realPath(workspace) ?? workspace))
    throw new PenError('GROUP', {
      what: `${path} lies in the project, where the sandbox could change it`,
      at: path,
      hint: 'keep it outside the project, or allow the hosts with pen allow',
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

function isWithin(path: string, directory: string): boolean {
  const way = relative(directory, path)
  return way === '' || (!way.startsWith('..') && !isAbsolute(way))
}

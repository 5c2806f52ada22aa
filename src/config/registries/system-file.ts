import { type BigIntStats, lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { errnoOf, PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'

const MAX_BYTES = 1 << 20

/** As many links as the kernel follows. */
const MAX_LINKS = 40

/**
 * Reads a configuration file of the user or the system, or undefined when there is none. Such a file may be a link
 * (people keep their dot files elsewhere), but neither to nor by way of a place where the sandbox may write, as in the workspace: what
 * the agent can write grants nothing, and what it can link to grants nothing by its choice.
 */
export function readSystemFile(path: string, writable: readonly string[]): string | undefined {
  try {
    const { real, through } = follow(path, writable)
    if (through !== undefined)
      throw new PenError('GROUP', {
        what: `${path} is in ${printable(through)}, or is reached through it, where the sandbox could change it`,
        at: path,
        hint: 'keep it elsewhere, or allow the hosts with pen allow instead of the group',
      })
    return readRegularFile(real, { maxBytes: MAX_BYTES, owner: 'self-or-root' })?.toString('utf8')
  } catch (error) {
    if (isAbsent(error)) return undefined
    if (error instanceof PenError) throw error
    throw new PenError('GROUP', {
      what: `${path} could not be read (${errnoOf(error) ?? 'unknown error'})`,
      at: path,
      hint: 'make it readable for you, or allow the hosts with pen allow',
      cause: error,
    })
  }
}

/** Where a path leads, and which of these places it passes, compared by identity: a spelling or a second mount is no other place. */
function follow(path: string, places: readonly string[]): { real: string; through: string | undefined } {
  const known = new Map(places.flatMap(place => identityOf(statSync(place, MAY_BE_ABSENT), place)))
  let [real, links] = ['', 0]
  let through: string | undefined
  for (const left = path.split('/'); left.length > 0; ) {
    const name = left.shift() ?? ''
    if (name === '' || name === '.') continue
    if (name === '..') {
      real = real.slice(0, real.lastIndexOf('/'))
      continue
    }
    const at = `${real}/${name}`
    const stats = lstatSync(at, { bigint: true })
    if (!stats.isSymbolicLink()) {
      real = at
      through ??= known.get(idOf(stats))
      continue
    }
    if (++links > MAX_LINKS) throw Object.assign(new Error('too many links'), { code: 'ELOOP' })
    const target = readlinkSync(at)
    if (target.startsWith('/')) real = ''
    left.unshift(...target.split('/'))
  }
  return { real, through }
}

const MAY_BE_ABSENT = { bigint: true, throwIfNoEntry: false } as const
const idOf = ({ dev, ino }: BigIntStats): string => `${dev}:${ino}`
const identityOf = (stats: BigIntStats | undefined, place: string): [string, string][] =>
  stats === undefined ? [] : [[idOf(stats), place]]

/** The names in a directory, in order; none when there is no such directory. */
export function listSystemDirectory(path: string): string[] {
  try {
    return readdirSync(path).sort()
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
}

const isAbsent = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')

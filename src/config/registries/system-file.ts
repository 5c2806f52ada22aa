import { type BigIntStats, lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { errnoOf, errnoText, PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'

const MAX_BYTES = 1 << 20

/** The kernel's own limit. */
const MAX_LINKS = 40

/**
 * Reads a configuration file of the user or the system; undefined if there is none. The file may be a link, as for dotfiles.
 * It is refused if the link leads to or through a directory that the sandbox can write: an agent must not choose grants.
 */
export function readSystemFile(path: string, writable: readonly string[]): string | undefined {
  try {
    const { real, through } = follow(path, writable)
    if (through !== undefined)
      throw new PenError('GROUP', {
        what: `${path} is in ${printable(through)}, or is reached through it, where the sandbox could change it`,
        at: path,
        hint: 'move it elsewhere, or allow the hosts with pen allow instead of the group',
      })
    return readRegularFile(real, { maxBytes: MAX_BYTES, owner: 'self-or-root' })?.toString('utf8')
  } catch (error) {
    if (isAbsent(error)) return undefined
    if (error instanceof PenError) throw error
    throw new PenError('GROUP', {
      what: `${path} could not be read (${errnoText(error)})`,
      at: path,
      hint: 'make it readable for you, or allow the hosts with pen allow',
      cause: error,
    })
  }
}

/** Resolves a path and finds the first of these places on the way. Compares inodes, so other spellings and mounts match too. */
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

/** The sorted names in a directory; empty if there is no such directory. */
export function listSystemDirectory(path: string): string[] {
  try {
    return readdirSync(path).sort()
  } catch (error) {
    if (isAbsent(error)) return []
    throw error
  }
}

const isAbsent = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')

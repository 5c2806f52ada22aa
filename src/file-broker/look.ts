/** What stands at a place, and what is in a directory. Links are named, never followed. */
import { closeSync, fstatSync } from 'node:fs'
import type { EntryKind, FileFacts } from '../protocol/broker-messages.ts'
import { directoryNames } from './directory-names.ts'
import type { Exchange } from './exchange.ts'
import type { Access, Operation } from './operation.ts'
import { Refusal } from './refusal.ts'
import { isPlainName } from './requested-path.ts'

export function prepareStat(access: Access): Operation {
  const fd = access.open(access.path)
  try {
    const facts = factsOf(fd, access)
    return {
      run: async exchange => {
        exchange.send({ kind: 'facts', facts })
      },
      close: () => undefined,
    }
  } finally {
    closeSync(fd)
  }
}

/** Of a descriptor; refuses whatever is neither a file nor a directory. */
export function factsOf(fd: number, { grant }: Access): FileFacts {
  const stats = fstatSync(fd)
  if (stats.isSymbolicLink()) throw new Refusal('link')
  if (!stats.isFile() && !stats.isDirectory()) throw new Refusal('not-regular')
  return {
    kind: stats.isFile() ? 'file' : 'directory',
    size: stats.isFile() ? stats.size : 0,
    modified: Math.max(0, Math.floor(stats.mtimeMs)),
    executable: stats.isFile() && grant.execute && (stats.mode & 0o100) !== 0,
    writable: grant.write,
  }
}

export function prepareList(access: Access, from: number): Operation {
  const fd = access.open(access.path)
  try {
    if (factsOf(fd, access).kind !== 'directory') throw new Refusal('not-directory')
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return {
    run: async exchange => {
      const { names, truncated } = await namesIn(fd, access, exchange)
      const { pageNames } = access.limits
      const entries = names.slice(from, from + pageNames)
      const next = from + entries.length < names.length ? from + entries.length : null
      exchange.send({ kind: 'page', page: { entries, next, truncated } })
    },
    close: () => closeSync(fd),
  }
}

interface Names {
  readonly names: readonly { readonly name: string; readonly kind: EntryKind }[]
  readonly truncated: boolean
}

/** A few at a time: a sandbox that lists large directories all day waits for its turn, and the supervisor for nothing. */
async function namesIn(fd: number, access: Access, exchange: Exchange): Promise<Names> {
  const { path, limits } = access
  const names: { name: string; kind: EntryKind }[] = []
  let read = 0
  for (const { name, kind } of directoryNames(fd)) {
    if (read === limits.maxNames) return { names: inOrder(names), truncated: true }
    if (read++ % limits.namesPerTurn === 0) {
      await access.turn()
      access.check()
      await exchange.room()
    }
    // A name that could not be asked for (no text, or with control characters) is not told, nor is one that is denied.
    if (name === undefined || !isPlainName(name) || !access.mayTell(`${path}/${name}`)) continue
    names.push({ name, kind })
  }
  return { names: inOrder(names), truncated: false }
}

const inOrder = <T extends { readonly name: string }>(names: T[]): T[] =>
  names.sort((a, b) => (a.name < b.name ? -1 : 1))

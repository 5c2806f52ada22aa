/** What stands at a place, and what is in a directory. Links are named, never followed. */
import { closeSync, type Dirent, fstatSync, opendirSync } from 'node:fs'
import type { EntryKind, FileFacts } from '../wire/broker-messages.ts'
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
      const { names, truncated } = namesIn(fd, access)
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

function namesIn(fd: number, { path, limits, mayTell }: Access): Names {
  const directory = opendirSync(`/proc/self/fd/${fd}`)
  try {
    const names: { name: string; kind: EntryKind }[] = []
    for (let read = 0; ; read++) {
      const entry = directory.readSync()
      if (entry === null) return { names: inOrder(names), truncated: false }
      if (read === limits.maxNames) return { names: inOrder(names), truncated: true }
      // A name that could not be asked for (no text, or with control characters) is not told, nor is one that is denied.
      const isName = isPlainName(entry.name) && !entry.name.includes('\ufffd')
      if (!isName || !mayTell(`${path}/${entry.name}`)) continue
      names.push({ name: entry.name, kind: kindOf(entry) })
    }
  } finally {
    directory.closeSync()
  }
}

const inOrder = <T extends { readonly name: string }>(names: T[]): T[] =>
  names.sort((a, b) => (a.name < b.name ? -1 : 1))

const kindOf = (entry: Dirent): EntryKind =>
  entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : entry.isSymbolicLink() ? 'link' : 'other'

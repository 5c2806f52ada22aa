/** The operations `stat` and `list`. Symbolic links are listed, never followed. */
import { closeSync, fstatSync, lstatSync } from 'node:fs'
import { directoryEntries } from '../base/beneath/directory-entries.ts'
import type { EntryKind, FileFacts } from '../protocol/broker-messages.ts'
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

/** Refuses everything except files and directories. */
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

/** Reads a few entries at a time, so that large listings wait in the rate limit and do not block the supervisor. */
async function namesIn(fd: number, access: Access, exchange: Exchange) {
  const { path, limits } = access
  const names: { name: string; kind: EntryKind }[] = []
  let read = 0
  let truncated = false
  for (const { name, kind } of directoryNames(fd)) {
    truncated = read === limits.maxNames
    if (truncated) break
    if (read++ % limits.namesPerTurn === 0) {
      await access.turn()
      access.check()
      await exchange.room()
    }
    // Skips names that a client cannot request (non-UTF-8 or control characters) and denied ones.
    if (name === undefined || !isPlainName(name) || !access.mayList(`${path}/${name}`)) continue
    names.push({ name, kind })
  }
  names.sort((a, b) => (a.name < b.name ? -1 : 1))
  return { names, truncated }
}

interface DirectoryName {
  /** Undefined for a non-UTF-8 name. */
  readonly name: string | undefined
  readonly kind: EntryKind
}

/**
 * Iterates over a directory. A sandbox may have filled it, so it is never read into memory as a whole. `dir` is a
 * descriptor, which the caller closes.
 */
export function* directoryNames(dir: number): Generator<DirectoryName, void, void> {
  for (const { name: bytes, type } of directoryEntries(dir)) {
    const name = textOf(bytes)
    const kind = type !== 'unknown' ? type : name === undefined ? 'other' : kindOf(dir, name)
    yield { name, kind }
  }
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Some file systems return only the name. */
function kindOf(fd: number, name: string): EntryKind {
  const stats = lstatSync(`/proc/self/fd/${fd}/${name}`, { throwIfNoEntry: false })
  if (stats?.isFile()) return 'file'
  if (stats?.isDirectory()) return 'directory'
  return stats?.isSymbolicLink() ? 'link' : 'other'
}

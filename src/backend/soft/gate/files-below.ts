/**
 * The files below a path that the policy allows to read, for a search. Every directory and file is judged. A refused
 * one is recorded and skipped. No link is followed.
 */
import { closeSync, constants, fstatSync } from 'node:fs'
import { errnoOf, PenError } from '../../../base/error.ts'
import { basename, dirname } from '../../../base/posix-path.ts'
import type { HostPath } from '../../../policy/files/path.ts'
import { Directory, readUpTo } from './directory.ts'
import type { Gate } from './gate.ts'
import { ActionFailed, Refused } from './refused.ts'

export interface Scope {
  /** Names of directories that are skipped unless the search begins there. */
  readonly skip: readonly string[]
  readonly mostBytes: number
}

export interface FoundFile {
  readonly path: string
  /** Undefined when the file is gone, or cannot be opened. */
  read(): Uint8Array | 'too long' | undefined
}

/** Limits of a search: each name costs time of the supervisor, or a record. */
const MAX_NAMES = 200_000
const MAX_REFUSED = 1000

export function* filesBelow(gate: Gate, text: string, scope: Scope): Generator<FoundFile> {
  const { judge } = gate
  const path = judge.find('read', text)
  judge.allow('read', path)
  if (path === '/') return
  const parent = openParent(path)
  const budget = { names: MAX_NAMES, refused: MAX_REFUSED }
  try {
    if (parent.look(basename(path)) === undefined) throw absent(path)
    yield* walk(gate, parent, basename(path), scope, budget)
  } finally {
    parent.close()
  }
}

function* walk(
  gate: Gate,
  parent: Directory,
  name: string,
  scope: Scope,
  budget: { names: number; refused: number },
): Generator<FoundFile> {
  const path = `${parent.path}/${name}` as HostPath
  if (budget.names-- <= 0 || budget.refused <= 0)
    throw new PenError('LIMIT', {
      what: 'there is too much below it',
      at: path,
      hint: 'search its parts one by one',
    })
  const stats = parent.look(name)
  if (stats?.isFile() !== true && stats?.isDirectory() !== true) return
  const verdict = gate.judge.verdict('read', path)
  if (!verdict.ok) {
    budget.refused--
    gate.judge.refuse('read', path, verdict)
    return
  }
  if (stats.isFile()) {
    yield { path, read: () => contentOf(gate, parent, name, scope.mostBytes) }
    return
  }
  const directory = entered(gate, parent, name)
  if (directory === undefined) return
  try {
    for (const inner of directory.names().sort((a, b) => (a < b ? -1 : 1)))
      if (!scope.skip.includes(inner)) yield* walk(gate, directory, inner, scope, budget)
  } finally {
    directory.close()
  }
}

function openParent(path: HostPath): Directory {
  try {
    return Directory.open(dirname(path) as HostPath)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    throw absent(path)
  }
}

const absent = (at: string): ActionFailed =>
  new ActionFailed('ENOENT', { what: 'it is not there', at, hint: 'check the spelling; list the directory' })

/** Undefined when it is another kind of file by now, or closed to the user that root acts for. */
function entered(gate: Gate, parent: Directory, name: string): Directory | undefined {
  return unlessRefused(() => {
    const directory = parent.enter(name)
    try {
      gate.requireOwn('read', directory.path, directory.stats())
      directory.names()
      return directory
    } catch (error) {
      directory.close()
      throw error
    }
  })
}

function contentOf(
  gate: Gate,
  parent: Directory,
  name: string,
  most: number,
): Uint8Array | 'too long' | undefined {
  return unlessRefused(() => {
    const fd = parent.openFile(name, constants.O_RDONLY)
    try {
      const stats = fstatSync(fd, { bigint: true })
      if (!stats.isFile()) return undefined
      gate.requireOwn('read', `${parent.path}/${name}`, stats)
      if (stats.size > BigInt(most)) return 'too long'
      const { bytes, truncated } = readUpTo(fd, 0, most)
      return truncated ? 'too long' : bytes
    } finally {
      closeSync(fd)
    }
  })
}

/** A refusal is already recorded. A file that the kernel refuses is skipped. */
function unlessRefused<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (error instanceof Refused || errnoOf(error) !== undefined) return undefined
    throw error
  }
}

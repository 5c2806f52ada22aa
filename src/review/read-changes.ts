/**
 * Reads a review layer into a list of changes. Walks the upper directory and the project side by side, by descriptor and
 * through no link. The upper directory is hostile, and the sandbox may write it meanwhile.
 */
import { closeSync, fstatSync } from 'node:fs'
import { at, LIST, openDirectory, withAccess } from '../base/beneath/beneath.ts'
import { directoryEntries } from '../base/beneath/directory-entries.ts'
import { lookAt, Unseen } from '../base/beneath/look-at.ts'
import { errnoOf, PenError } from '../base/error.ts'
import type { Change } from './change.ts'
import { describe, type Entry, hasSameContent, lookInto, nameBytes, unlocked, withContent } from './entry.ts'
import { isOpaque, isWhiteout } from './overlay-marks.ts'

const MAX_DEPTH = 64
const MAX_ENTRIES = 500_000

export interface ReadLimits {
  readonly maxDepth?: number
  readonly maxEntries?: number
  /** Of the files whose content is read. */
  readonly maxBytes?: number
  readonly copy?: CopyTimes | undefined
}

/** Of a layer that is a copy of the project. What did not change since is as the project was. */
export interface CopyTimes {
  /** When the copy began, and when it was done. */
  readonly beganNs: bigint
  readonly doneNs: bigint
}

/** Sorted by path. `tree` is the upper directory, or the copy; both paths are canonical and of pen's choice. */
export function readChanges(tree: string, project: string, limits: ReadLimits = {}): readonly Change[] {
  const [layer, host] = [openDirectory(tree), openDirectory(project)]
  try {
    if (layer === undefined || host === undefined) return []
    const reader = new Reader(fstatSync(host, { bigint: true }).dev, limits)
    reader.compareDirectory(layer, host)
    return reader.changes.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  } finally {
    for (const fd of [layer, host]) if (fd !== undefined) closeSync(fd)
  }
}

/** One directory in the layer and in the project, where it has one. */
interface Directories {
  readonly layer: number
  readonly host: number | undefined
  /** Of the directory, with a slash at its end; of a `Pair`, of the name itself. */
  readonly path: string
  /** Of a copy: one of the directories above got a new ctime, as a directory does that is moved. */
  readonly mayBeMoved: boolean
}

/** One name in both. */
interface Pair extends Directories {
  readonly name: string
  readonly before: Entry | undefined
  readonly after: Entry
  /** False for what is in a copy as it was copied, or as the user made it since. */
  readonly isTouched: boolean
}

class Reader {
  readonly changes: Change[] = []
  readonly #device: bigint
  readonly #maxDepth: number
  readonly #copy: CopyTimes | undefined
  #left: number
  #bytesLeft: number

  constructor(device: bigint, limits: ReadLimits) {
    const {
      maxDepth = MAX_DEPTH,
      maxEntries = MAX_ENTRIES,
      maxBytes = Number.POSITIVE_INFINITY,
      copy,
    } = limits
    this.#bytesLeft = maxBytes
    this.#copy = copy
    this.#device = device
    this.#maxDepth = maxDepth
    this.#left = maxEntries
  }

  /** The project itself. */
  compareDirectory(layer: number, host: number): void {
    const [before, after] = [host, layer].map(fd => describe(fstatSync(fd, { bigint: true })))
    if (before !== undefined && after !== undefined && before.mode !== after.mode)
      this.changes.push({ path: '.', kind: 'mode', before, after })
    this.#walk({ layer, host, path: '', mayBeMoved: false }, 1, this.#copy !== undefined)
  }

  /** With `hides`, only what the layer has is there. That holds for each directory of a copy. */
  #walk(both: Directories, depth: number, hides: boolean): void {
    const { layer, host, path } = both
    const seen = new Set<string>()
    withAccess(layer, LIST, () => {
      for (const { name: bytes } of directoryEntries(layer)) {
        this.#count()
        const name = bytes.toString('latin1')
        if (hides) seen.add(name)
        if (this.#isOwnGit(path, name)) continue
        this.#guarded(`${path}${name}`, host, name, () => this.#compare(both, name, depth))
      }
    })
    if (hides && host !== undefined) this.#deleteAll(host, path, depth, seen)
  }

  #compare(both: Directories, name: string, depth: number): void {
    const { layer, host, path } = both
    const after = lookInto(layer, name)
    // The sandbox removed it in this moment.
    if (after === undefined) return
    const isNew = this.#copy === undefined || after.ctimeNs > this.#copy.doneNs
    if (!isNew && !both.mayBeMoved && after.type !== 'directory') return
    const before = host === undefined ? undefined : lookInto(host, name)
    // What is moved with its directory keeps its ctime.
    const isTouched = isNew || (both.mayBeMoved && !this.#isEdited(before))
    if (!isTouched && after.type !== 'directory') return
    const mayBeMoved = both.mayBeMoved || (isNew && this.#copy !== undefined)
    const pair = { ...both, name, path: `${path}${name}`, before, after, isTouched, mayBeMoved }
    if (after.type === 'other') this.#compareOther(pair, depth)
    else if (after.type === 'directory') this.#compareDirectories(pair, depth)
    else this.#compareFiles(pair, depth)
  }

  #compareOther({ layer, host, name, path, before, after }: Pair, depth: number): void {
    const stats = lookAt(at(layer, nameBytes(name)))
    if (stats === undefined || !isWhiteout(stats))
      this.changes.push({ path, kind: 'added', before, after, refused: 'it is a pipe, socket or device' })
    else if (host !== undefined && before !== undefined) this.#delete(host, name, before, path, depth)
  }

  /** A link is compared like a file. */
  #compareFiles({ layer, host, name, path, before, after: found }: Pair, depth: number): void {
    this.#bytesLeft -= found.size
    if (this.#bytesLeft < 0) throw new TooMany(this.changes.length)
    const after = unlocked(layer, name, () => withContent(layer, name, found))
    if (before === undefined || host === undefined) {
      this.changes.push({ path, kind: 'added', before, after })
      return
    }
    if (before.type === 'directory') this.#deleteBelow(host, name, path, depth)
    const mayBeSame = before.type === after.type && before.size === after.size
    const known = mayBeSame ? withContent(host, name, before) : before
    const kind = known.type !== after.type ? 'type' : hasSameContent(known, after) ? 'mode' : 'changed'
    if (kind !== 'mode' || known.mode !== after.mode) this.changes.push({ path, kind, before: known, after })
  }

  #compareDirectories(pair: Pair, depth: number): void {
    const { layer, host, name, path, before, after } = pair
    const kind = before === undefined ? 'added' : before.type === 'directory' ? 'mode' : 'type'
    if (pair.isTouched && (kind !== 'mode' || before?.mode !== after.mode))
      this.changes.push({ path, kind, before, after })
    if (depth >= this.#maxDepth) throw new Refusal(TOO_DEEP)
    const inner = openDirectory(at(layer, nameBytes(name)))
    if (inner === undefined) return
    let below: number | undefined
    try {
      if (before?.type === 'directory' && host !== undefined) below = this.#enter(host, name)
      this.#walk(
        { layer: inner, host: below, path: `${path}/`, mayBeMoved: pair.mayBeMoved },
        depth + 1,
        this.#copy !== undefined || isOpaque(inner),
      )
    } finally {
      closeSync(inner)
      if (below !== undefined) closeSync(below)
    }
  }

  #delete(host: number, name: string, before: Entry, path: string, depth: number): void {
    if (before.type === 'directory') this.#deleteBelow(host, name, path, depth)
    this.changes.push({ path, kind: 'deleted', before, after: undefined })
  }

  #deleteBelow(host: number, name: string, path: string, depth: number): void {
    if (depth >= this.#maxDepth) throw new Refusal(TOO_DEEP)
    const inner = this.#enter(host, name)
    if (inner === undefined) return
    try {
      this.#deleteAll(inner, `${path}/`, depth + 1, new Set())
    } finally {
      closeSync(inner)
    }
  }

  #deleteAll(host: number, path: string, depth: number, except: ReadonlySet<string>): void {
    for (const { name: bytes } of directoryEntries(host)) {
      const name = bytes.toString('latin1')
      if (except.has(name) || this.#isOwnGit(path, name)) continue
      this.#count()
      this.#guarded(`${path}${name}`, host, name, () => {
        const before = lookInto(host, name)
        if (before !== undefined && !this.#isNewer(before, host, name))
          this.#delete(host, name, before, `${path}${name}`, depth)
      })
    }
  }

  /** The sandbox has a git directory of its own there. */
  #isOwnGit(path: string, name: string): boolean {
    return this.#copy !== undefined && path === '' && name === '.git'
  }

  /** By the user, since the copy. */
  #isEdited(before: Entry | undefined): boolean {
    return this.#copy !== undefined && before !== undefined && before.ctimeNs >= this.#copy.beganNs
  }

  /** What a copy lacks was deleted inside, unless it came later. A directory gets a new ctime with each name in it. */
  #isNewer({ type, ctimeNs }: Entry, host: number, name: string): boolean {
    if (this.#copy === undefined) return false
    const since = type === 'directory' ? (lookAt(at(host, nameBytes(name)))?.birthtimeNs ?? ctimeNs) : ctimeNs
    return since >= this.#copy.beganNs
  }

  /** A directory of the project. One of another file system was not in the sandbox. */
  #enter(host: number, name: string): number | undefined {
    const fd = openDirectory(at(host, nameBytes(name)))
    if (fd === undefined || fstatSync(fd, { bigint: true }).dev === this.#device) return fd
    closeSync(fd)
    throw new Refusal('another file system is mounted there')
  }

  /** What pen cannot look at is listed, and never applied. */
  #guarded(path: string, host: number | undefined, name: string, act: () => void): void {
    try {
      act()
    } catch (error) {
      const why = error instanceof Unseen ? `pen cannot look at it (${error.errno})` : refusalOf(error)
      if (why === undefined) throw error
      this.changes.push({ path, kind: 'changed', before: glance(host, name), after: undefined, refused: why })
    }
  }

  #count(): void {
    if (--this.#left < 0) throw new TooMany(this.changes.length)
  }
}

export class TooMany extends PenError {
  readonly found: number

  /** Changes that were found until then. */
  constructor(found: number) {
    super('LIMIT', {
      what: `the review layer has more than ${MAX_ENTRIES} changes`,
      hint: 'remove generated files inside the sandbox, or drop all changes: pen discard',
    })
    this.found = found
  }
}

const TOO_DEEP = 'its directories are nested too deeply'

class Refusal extends Error {}

function refusalOf(error: unknown): string | undefined {
  if (error instanceof Refusal) return error.message
  const errno = errnoOf(error)
  if (errno === undefined) return undefined
  return errno === 'ENOENT' || errno === 'ELOOP'
    ? 'it changed while pen read it'
    : `pen cannot read it (${errno})`
}

function glance(dir: number | undefined, name: string): Entry | undefined {
  try {
    return dir === undefined ? undefined : lookInto(dir, name)
  } catch {
    return undefined
  }
}

/**
 * Applies chosen changes to the project, file by file: each is as it was shown, or not applied at all. The layer is hostile,
 * and the user edits the project meanwhile. Every directory is reached by descriptor, through no link.
 */
import { chmodSync, closeSync, constants, fstatSync, openSync, rmdirSync } from 'node:fs'
import { at, itself } from '../base/beneath/beneath.ts'
import { Unseen } from '../base/beneath/look-at.ts'
import { setModified } from '../base/beneath/rename-at.ts'
import { errnoOf } from '../base/error.ts'
import { O_PATH } from '../base/kernel/descriptor.ts'
import type { Accepted } from './accepted.ts'
import { type Attempt, Batches } from './apply-batch.ts'
import type { Change } from './change.ts'
import type { Left } from './choose-changes.ts'
import { describe, lookInto, nameBytes } from './entry.ts'
import { Journal } from './journal.ts'
import { OpenDirectories, parentOf } from './open-directories.ts'
import { NOT_EMPTY, requireAsShown } from './put-in-place.ts'
import { makeDirectory, NotAsShown, ownerFor } from './stage.ts'

export interface Application {
  readonly applied: readonly Change[]
  readonly left: readonly Left[]
  /** Why it stopped early. */
  readonly stopped: string | undefined
}

export interface Places {
  /** The layer's directory in pen's state, with the journal. */
  readonly layer: string
  /** What the sandbox wrote: the upper directory, or the copy. */
  readonly tree: string
  readonly workspace: string
}

/** `changes` are sorted by path. */
export function applyChanges(changes: readonly Change[], places: Places, accepted: Accepted): Application {
  using directories = new OpenDirectories(places.workspace, places.tree, 'write')
  const journal = new Journal(places.layer)
  const applying = new Applying(directories, journal, accepted)
  applying.run(changes)
  accepted.flush()
  journal.close()
  return applying
}

/** These stop an accept: no file can be written any more. */
const STOPS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'your disk quota is used up',
  EROFS: 'the file system is read-only',
}

class Applying implements Application {
  readonly applied: Change[] = []
  readonly left: Left[] = []
  stopped: string | undefined
  readonly #directories: OpenDirectories
  readonly #accepted: Accepted
  readonly #batches: Batches

  constructor(directories: OpenDirectories, journal: Journal, accepted: Accepted) {
    this.#directories = directories
    this.#accepted = accepted
    const attempt: Attempt = (change, act, has) => this.#attempt(change, act, has)
    this.#batches = new Batches(directories, journal, { accepted, attempt, left: this.left })
  }

  /** Nothing is removed before what is new is there, except where it stands in the way. */
  run(changes: readonly Change[]): void {
    const puts = changes.filter(({ kind, after }) => after !== undefined && kind !== 'mode')
    const [directories, files] = [puts.filter(makesDirectory), puts.filter(change => !makesDirectory(change))]
    const removals = changes.filter(({ kind }) => kind === 'deleted')
    // First where a file or a link stands: new directories may be below.
    this.#batch(directories.filter(({ before }) => before !== undefined))
    this.#each(
      directories.filter(({ before }) => before === undefined),
      this.#makeDirectory,
    )
    this.#batch(files.filter(change => !wasDirectory(change)))
    this.#batch(removals.filter(change => !wasDirectory(change)))
    this.#each(removals.filter(wasDirectory).reverse(), this.#removeDirectory)
    this.#batch(files.filter(wasDirectory))
    this.#each(
      changes.filter(({ kind }) => kind === 'mode'),
      this.#setMode,
    )
    this.#directories.release()
    this.#finishDirectories()
  }

  #batch(changes: readonly Change[]): void {
    this.applied.push(...this.#batches.run(changes))
  }

  #each(changes: readonly Change[], act: (change: Change) => void): void {
    for (const change of changes)
      if (this.#attempt(change, () => act(change), 'new')) this.applied.push(change)
    // An unlocked directory does not look as it was shown.
    this.#directories.release()
  }

  /** A failure leaves this file as it was, and the next one goes on. */
  #attempt(change: Change, act: () => void, has: 'new' | 'begun'): boolean {
    const { path } = change
    if (this.stopped !== undefined && has === 'new') {
      this.left.push({ path, why: this.stopped })
      return false
    }
    try {
      act()
      return true
    } catch (error) {
      this.left.push({ path, why: this.#reason(error) })
      return false
    }
  }

  #reason(error: unknown): string {
    if (error instanceof NotAsShown) return error.message
    const errno = error instanceof Unseen ? error.errno : errnoOf(error)
    if (errno === undefined) throw error
    this.stopped ??= STOPS[errno]
    return STOPS[errno] ?? REASONS[errno] ?? `it could not be written (${errno})`
  }

  readonly #makeDirectory = ({ path }: Change): void => {
    const { dir, name } = this.#directories.at(path)
    try {
      makeDirectory(dir, name, ownerFor(dir, undefined))
    } catch (error) {
      // The user made one meanwhile: its files stay.
      if (errnoOf(error) !== 'EEXIST' || lookInto(dir, name)?.type !== 'directory') throw error
    }
  }

  readonly #removeDirectory = ({ path }: Change): void => {
    const { dir, name } = this.#directories.at(path)
    try {
      rmdirSync(at(dir, nameBytes(name)))
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'ENOTEMPTY') throw new NotAsShown(NOT_EMPTY)
      if (errno !== 'ENOENT') throw error
    }
  }

  /** In place: the content stays, and so do hard links. A directory gets its mode at the end. */
  readonly #setMode = ({ path, before, after }: Change): void => {
    const { dir, name } = this.#directories.at(path)
    const fd = openSync(at(dir, nameBytes(name)), O_PATH | constants.O_NOFOLLOW)
    try {
      if (before !== undefined) requireAsShown(before, describe(fstatSync(fd, { bigint: true })))
      if (after?.type === 'file') chmodSync(itself(fd), after.mode)
    } finally {
      closeSync(fd)
    }
  }

  /** Deepest first: a change renews the time of its directory, and a new mode may lock it. */
  #finishDirectories(): void {
    const modes = new Map<string, number>()
    const touched = new Set<string>()
    for (const { path, after } of this.applied) {
      touched.add(parentOf(path))
      if (after?.type !== 'directory') continue
      modes.set(path, after.mode)
      touched.add(path)
    }
    const depth = (path: string): number => (path === '.' ? 0 : path.split('/').length)
    for (const path of [...touched].sort((a, b) => depth(b) - depth(a)))
      try {
        this.#directories.inside(path, (dir, layer) => {
          finishDirectory(dir, layer, modes.get(path))
          this.#accepted.add(path, fstatSync(dir, { bigint: true }))
        })
      } catch (error) {
        this.left.push({ path, why: this.#reason(error) })
      }
  }
}

function finishDirectory(dir: number, layer: number | undefined, mode: number | undefined): void {
  if (layer !== undefined) setModified(dir, '.', fstatSync(layer, { bigint: true }).mtimeNs)
  const now = Number(fstatSync(dir, { bigint: true }).mode)
  // A directory keeps its setgid bit: what is made in it gets its group.
  if (mode !== undefined && (now & 0o777) !== mode) chmodSync(itself(dir), (now & 0o7000) | mode)
}

const makesDirectory = ({ after }: Change): boolean => after?.type === 'directory'
const wasDirectory = ({ before }: Change): boolean => before?.type === 'directory'

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its directory is not there',
  ENOTDIR: 'its directory is not there',
  ELOOP: 'a link stands in its place on the host',
  EXDEV: 'another file system is mounted there',
  EACCES: 'you may not write there',
  EPERM: 'you may not write there',
  EINVAL: 'the file system cannot exchange files (no RENAME_EXCHANGE)',
}

/** Stages a batch of new versions beside their places, flushes them to the disk, and puts each into its place. */
import { fstatSync, lstatSync } from 'node:fs'
import { at } from '../base/beneath/beneath.ts'
import { lookAt } from '../base/beneath/look-at.ts'
import type { Accepted } from './accepted.ts'
import type { Change } from './change.ts'
import type { Left } from './choose-changes.ts'
import { type Known, lookInto } from './entry.ts'
import { Flush } from './flush.ts'
import type { Journal } from './journal.ts'
import type { OpenDirectories, Place } from './open-directories.ts'
import { putInPlace, removeBeside, takeAway } from './put-in-place.ts'
import { NotAsShown, ownerFor, stage } from './stage.ts'

const MOST = 512
const MOST_BYTES = 64 * 2 ** 20

/**
 * Runs one step. False when it failed, and everything is as it was before. A full disk stops what has not begun; what is
 * staged goes on.
 */
export type Attempt = (change: Change, act: () => void, has: 'new' | 'begun') => boolean

interface Item {
  readonly change: Change
  /** Cannot be guessed. */
  readonly beside: string
}

export class Batches {
  readonly #directories: OpenDirectories
  readonly #journal: Journal
  readonly #accepted: Accepted
  readonly #attempt: Attempt
  readonly #left: Left[]
  readonly #flush: Flush = new Flush()

  constructor(
    directories: OpenDirectories,
    journal: Journal,
    { accepted, attempt, left }: { accepted: Accepted; attempt: Attempt; left: Left[] },
  ) {
    this.#directories = directories
    this.#journal = journal
    this.#accepted = accepted
    this.#attempt = attempt
    this.#left = left
  }

  /** Returns those that are in their place. */
  run(changes: readonly Change[]): readonly Change[] {
    const done: Change[] = []
    for (let from = 0; from < changes.length; ) {
      let to = from
      for (let bytes = 0; to < changes.length && to - from < MOST && bytes < MOST_BYTES; to++)
        bytes += changes[to]?.after?.size ?? 0
      done.push(...this.#batch(changes.slice(from, to)))
      from = to
    }
    return done
  }

  #batch(changes: readonly Change[]): readonly Change[] {
    const items = changes.map((change): Item => ({ change, beside: `.pen-${crypto.randomUUID()}` }))
    this.#journal.stage(
      items.map(({ change: { path, before }, beside }) => ({
        path,
        beside,
        before: before === undefined ? null : known(before),
      })),
    )
    /** The inodes of staged names. */
    const staged = new Map<string, bigint>()
    const written = items.filter(item =>
      this.#attempt(
        item.change,
        () => {
          if (item.change.after !== undefined) staged.set(item.beside, this.#stage(item))
        },
        'new',
      ),
    )
    // A full disk may be found only now.
    const failure = failureOf(() => this.#flush.run())
    const ready = written.filter(({ change, beside }) =>
      this.#attempt(
        change,
        () => {
          if (failure === undefined) return
          removeBeside(this.#directories.at(change.path).dir, beside)
          throw failure
        },
        'begun',
      ),
    )
    this.#journal.place(Object.fromEntries(staged))
    const done = ready.filter(item =>
      this.#attempt(item.change, () => this.#place(item, staged.get(item.beside)), 'begun'),
    )
    this.#directories.flush()
    this.#directories.release()
    this.#accepted.flush()
    this.#journal.done()
    return done.map(({ change }) => change)
  }

  #stage({ change, beside }: Item): bigint {
    const { dir, layer, name } = this.#directories.at(change.path)
    if (layer === undefined) throw new NotAsShown('the sandbox removed its directory after it was listed')
    try {
      const fd = stage(change, { dir, beside, layer, name, owner: ownerFor(dir, change.before) })
      const { ino } = fd === undefined ? lstatSync(at(dir, beside), BIG) : fstatSync(fd, BIG)
      if (fd !== undefined) this.#flush.add(fd)
      return ino
    } catch (error) {
      // Nothing was exchanged: what has this name is pen's.
      removeBeside(dir, beside)
      throw error
    }
  }

  #place({ change: { path, before, after, merged }, beside }: Item, ino: bigint | undefined): void {
    const place = this.#directories.at(path)
    const { dir, name } = place
    try {
      if (after !== undefined) putInPlace(dir, beside, name, before)
      else if (before !== undefined) takeAway(dir, beside, name, before)
    } catch (error) {
      this.#clean(place, path, beside, ino)
      throw error
    }
    // A merged file still has the user's edit, so the next accept merges again.
    const now = merged !== undefined ? undefined : after === undefined ? before : lookInto(dir, name)
    if (now !== undefined) this.#accepted.add(path, now)
  }

  /** After a failure. A name with another inode has a version of the user's: a line says where. */
  #clean({ dir }: Place, path: string, beside: string, ino: bigint | undefined): void {
    const left = lookAt(at(dir, beside))
    if (left === undefined) return
    if (left.ino === ino) removeBeside(dir, beside)
    else this.#left.push({ path, why: `a version of it is kept beside it, as ${beside}` })
  }
}

const BIG = { bigint: true } as const

const known = ({ type, mode, size, ino, mtimeNs }: Known): Known => ({ type, mode, size, ino, mtimeNs })

function failureOf(act: () => void): unknown {
  try {
    act()
    return undefined
  } catch (error) {
    return error
  }
}

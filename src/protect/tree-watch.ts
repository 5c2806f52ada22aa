/**
 * Finds what `**` + `/` globs deny while a sandbox runs. Every directory of the workspace is watched, and a new one is
 * searched with everything below it. The watch begins before the listing, so no name is missed between the two. A sandbox
 * decides how much there is, so the search runs in slices, and a bound that is reached ends the run.
 */
import { closeSync } from 'node:fs'
import { itself, LIST, openDirectory, throughLocked, withAccess } from '../base/beneath/beneath.ts'
import { Unseen } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { type AnyDepth, bytesOf, isTextPath, shownPath, type TreePath } from '../survey/any-depth.ts'
import { NO_TEXT } from '../survey/non-utf8-directories.ts'
import { MAX_DIRECTORIES } from '../survey/search-tree.ts'
import { type Appeared, DirectoryWatch } from './directory-watch.ts'
import { inSlices } from './slices.ts'

export interface TreeEvents {
  /** A denied name appeared at this path. */
  found(path: string): void
  /** A bound was reached, so the globs can no longer be enforced. */
  overflowed(why: string): void
}

export const TOO_MANY = 'the sandbox made more denied files than can be covered'

/** More than at the start: the command may add directories. */
const MOST = 2 * MAX_DIRECTORIES
const MAX_FOUND = 10_000
/** How many are named in messages. */
const MAX_TOLD = 20
const BATCH_MS = 20
/** Without a moved directory for this long, every path is searched. */
const SETTLE_MS = 60
/** How often a locked directory is tried again. */
const LOCKED_MS = 250
/** A moved directory is found by its new name at once. The old name costs only a watch. */
const CHECK_MS = 1000
/** After lost events the whole tree is searched again, for at most this part of the time. */
const SEARCH_SHARE = 4
const [EACCES, ENOENT] = [-13, -2]

export class TreeWatch {
  readonly #search: AnyDepth
  readonly #events: TreeEvents
  readonly #watch: DirectoryWatch
  readonly #most: number
  /** Denied paths, and whether only a directory is denied there. */
  readonly #found = new Map<string, boolean>()
  readonly #uncovered = new Map<string, string>()
  /** Watched directories, and the ids of their watches. */
  #known = new Map<TreePath, number>()
  /**
   * A moved directory is searched with everything below it, also where it is watched: a search that ran while it moved may
   * have taken one directory for another.
   */
  readonly #queue = new Map<TreePath, 'directory' | 'moved'>()
  /** Directories that were moved: the names of their watches, and of those below, may be wrong. */
  readonly #left = new Set<TreePath>()
  readonly #locked = new Set<TreePath>()
  /** The name of each watch when it was last seen. */
  readonly #names = new Map<number, TreePath>()
  #state: 'idle' | 'searching' | 'full' | 'closed' = 'idle'
  #retry: ReturnType<typeof setTimeout> | undefined
  #check: ReturnType<typeof setTimeout> | undefined
  #later: ReturnType<typeof setTimeout> | undefined
  #namesCheck: 'due' | 'made' = 'made'
  #allSince: number | undefined
  #allAfter = 0
  #movedAt = 0
  /** Counts denied names: a survey is due when it changed. */
  version = 0

  constructor(search: AnyDepth, events: TreeEvents, most = MOST) {
    this.#search = search
    this.#events = events
    this.#most = most
    this.#watch = new DirectoryWatch(
      {
        appeared: (dir, name, what) => this.#appeared(dir, name, what),
        left: (dir, id, how) => this.#leave(dir, id, how),
        doubt: () => this.#searchAll(),
      },
      BATCH_MS,
    )
    // Before the command starts: later, a sandbox may have taken every instance.
    if (!this.#watch.open()) throw noInstance(this.#pattern())
  }

  /** Paths at which a denied name appeared, and whether only a directory is denied there. Each may be gone again. */
  get found(): ReadonlyMap<string, boolean> {
    return this.#found
  }

  get uncovered(): ReadonlyMap<string, string> {
    return this.#uncovered
  }

  /** False while directories move: a path of a moment ago may lead elsewhere, and what it led to may have another. */
  get isSettled(): boolean {
    const read = this.#watch.emptyAt
    const isRead = read - this.#movedAt > SETTLE_MS && performance.now() - read < SETTLE_MS
    return isRead && this.#state === 'idle' && this.#queue.size === 0
  }

  forget(path: string): void {
    this.#found.delete(path)
  }

  start(): void {
    this.#searchAll()
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    clearTimeout(this.#retry)
    clearTimeout(this.#check)
    clearTimeout(this.#later)
    this.#queue.clear()
    await this.#watch.close()
  }

  #appeared(dir: TreePath, name: string, what: Appeared): void {
    // The event has text only. The listing has the bytes.
    if (!isTextPath(dir) || name.includes(NO_TEXT)) {
      this.#known.delete(dir)
      this.#enqueue(dir)
      return
    }
    const path = `${dir}/${name}`
    const globs = this.#search.denying(dir, name)
    if (globs.length > 0)
      this.#deny(
        path,
        globs.every(glob => glob.directoryOnly),
      )
    else if (what !== 'file' && !this.#search.hides(path)) this.#enqueue(path, what)
    if (what === 'moved') this.#movedAt = performance.now()
  }

  #deny(path: TreePath, directoryOnly: boolean): void {
    if (!isTextPath(path)) this.#report(path, 'its name is no text')
    else if (this.#found.size >= MAX_FOUND) this.#overflows(TOO_MANY)
    else {
      this.version++
      this.#found.set(path, directoryOnly)
      this.#events.found(path)
    }
  }

  #enqueue(path: TreePath, what: 'directory' | 'moved' = 'directory'): void {
    this.#queue.set(path, this.#queue.get(path) === 'moved' ? 'moved' : what)
    if (this.#state === 'idle') void this.#work()
  }

  async #work(): Promise<void> {
    this.#state = 'searching'
    // Events arrive while the last search ends.
    do await inSlices(this.#searchQueue())
    while (this.#queue.size > 0 && !this.#ends())
    if (this.#ends()) return
    this.#state = 'idle'
    const now = performance.now()
    if (this.#allSince !== undefined) {
      this.#allAfter = now + SEARCH_SHARE * (now - this.#allSince)
      this.version++
    }
    this.#allSince = undefined
    if (this.#locked.size > 0) this.#retry ??= setTimeout(() => this.#tryLocked(), LOCKED_MS)
  }

  /** Also when a bound was reached. */
  #ends(): boolean {
    return this.#state === 'closed' || this.#state === 'full'
  }

  *#searchQueue(): Generator<void, void> {
    for (;;) {
      for (const [path, what] of this.#queue) {
        this.#queue.delete(path)
        yield* this.#searchFrom(path, what)
        if (this.#ends()) return
      }
      if (this.#namesCheck === 'made') return
      this.#namesCheck = 'made'
      yield* this.#checkNames()
    }
  }

  *#searchFrom(top: TreePath, what: 'directory' | 'moved'): Generator<void, void> {
    const queue = [top]
    for (let dir = queue.pop(); dir !== undefined; dir = queue.pop()) {
      yield
      if (this.#ends()) return
      const here = dir
      try {
        const begin = (fd: number, list: () => void): void =>
          withAccess(fd, LIST, () => {
            if (this.#begin(here, fd) || what === 'moved') list()
          })
        const visited = yield* this.#search.visit(here, begin, openUnlocked)
        for (const { path, globs } of visited?.denied ?? [])
          if (!this.#found.has(path))
            this.#deny(
              path,
              globs.every(glob => glob.directoryOnly),
            )
        for (const path of visited?.directories ?? []) queue.push(path)
      } catch (error) {
        if (!(error instanceof Unseen)) throw error
        this.#unseen(here, error.errno)
      }
    }
  }

  /** Watches the directory, which is open. False when it was watched under this name before: it has been listed since. */
  #begin(dir: TreePath, fd: number): boolean {
    const id = this.#add(dir, fd)
    if (id < 0 || id === this.#known.get(dir)) return false
    const before = this.#names.get(id)
    if (before !== undefined && this.#known.get(before) === id) this.#known.delete(before)
    this.#names.set(id, dir)
    this.#known.set(dir, id)
    if (this.#known.size > this.#most)
      this.#overflows(
        `the project has more than ${this.#most} directories, too many to search for ${this.#pattern()}`,
      )
    return true
  }

  #add(dir: TreePath, fd: number): number {
    // The dot: a watch does not follow the kernel's own link.
    const id = this.#watch.add(dir, `${itself(fd)}/.`)
    if (id === EACCES) throw new Unseen(bytesOf(dir), 'EACCES')
    if (id < 0 && id !== ENOENT)
      this.#overflows(
        `the kernel has no more watches for the directories in which ${this.#pattern()} is searched (sysctl fs.inotify.max_user_watches)`,
      )
    return id
  }

  #leave(dir: TreePath, id: number, how: 'removed' | 'moved'): void {
    if (!this.#names.has(id)) return
    if (how === 'removed') {
      this.#names.delete(id)
      if (this.#known.get(dir) === id) this.#known.delete(dir)
      return
    }
    this.#left.add(dir)
    this.#movedAt = performance.now()
    this.#check ??= setTimeout(() => {
      this.#check = undefined
      this.#namesCheck = 'due'
      if (this.#state === 'idle') void this.#work()
    }, CHECK_MS)
  }

  /** Drops the watches of directories that are no longer at their names. What stands there instead is searched. */
  *#checkNames(): Generator<void, void> {
    const left = new Set(this.#left)
    this.#left.clear()
    for (const [dir, id] of left.size === 0 ? [] : [...this.#known]) {
      yield
      if (this.#ends()) return
      if (!isBelowAny(dir, left) || this.#isAt(dir, id)) continue
      this.#known.delete(dir)
      this.#queue.set(dir, 'directory')
    }
    for (const [id, dir] of this.#names) {
      if (this.#known.get(dir) === id) continue
      this.#names.delete(id)
      this.#watch.remove(id)
    }
  }

  #isAt(dir: TreePath, id: number): boolean {
    try {
      const fd = openUnlocked(bytesOf(dir))
      if (fd === undefined) return false
      try {
        return this.#add(dir, fd) === id
      } finally {
        closeSync(fd)
      }
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
      this.#unseen(dir, error.errno)
      return true
    }
  }

  /** Events were lost, or none has arrived yet. */
  #searchAll(): void {
    if (this.#ends()) return
    const wait = this.#allAfter - performance.now()
    if (wait > 0) {
      this.#later ??= setTimeout(() => {
        this.#later = undefined
        this.#searchAll()
      }, wait)
      return
    }
    this.#known = new Map()
    this.#namesCheck = 'due'
    this.#allSince = performance.now()
    this.#enqueue(this.#search.workspace)
  }

  #unseen(dir: TreePath, errno: string): void {
    // A directory that is locked for pen is locked for the sandbox too, which is the same user.
    if (errno !== 'EACCES' || isHostRoot()) this.#report(dir, `pen could not look at it: ${errno}`)
    else if (this.#locked.size < this.#most) this.#locked.add(dir)
    else this.#overflows(`the project has more than ${this.#most} locked directories`)
  }

  #tryLocked(): void {
    this.#retry = undefined
    const locked = [...this.#locked]
    this.#locked.clear()
    for (const dir of locked) {
      this.#known.delete(dir)
      this.#enqueue(dir)
    }
  }

  #overflows(why: string): void {
    if (this.#ends()) return
    this.#state = 'full'
    this.#events.overflowed(why)
  }

  #report(path: TreePath, why: string): void {
    if (this.#uncovered.size < MAX_TOLD) this.#uncovered.set(shownPath(path), why)
  }

  #pattern = (): string => this.#search.globs[0]?.text ?? ''
}

const noInstance = (pattern: string): PenError =>
  new PenError('LIMIT', {
    what: `files.deny ${pattern} needs an inotify instance, and your user has none left`,
    hint: 'end programs that watch files, such as another sandbox; or raise the bound: sysctl fs.inotify.max_user_instances=1024',
  })

/** A sandbox may lock the directories above. */
function openUnlocked(dir: string | Buffer): number | undefined {
  try {
    return openDirectory(dir)
  } catch (error) {
    if (!(error instanceof Unseen)) throw error
    return throughLocked(dir, () => openDirectory(dir))
  }
}

function isBelowAny(path: TreePath, dirs: ReadonlySet<string>): boolean {
  for (let up = path; up !== ''; up = up.slice(0, up.lastIndexOf('/'))) if (dirs.has(up)) return true
  return false
}

/**
 * Reports new names in directories within a millisecond (inotify). It watches only for new names, so a sandbox that
 * writes to its files all day causes no work. The caller also looks periodically, because the kernel may refuse a watch and
 * the queue can overflow.
 */
import { closeSync } from 'node:fs'
import { tryCall } from '../base/kernel/system-call.ts'

const CLOEXEC_NONBLOCK = 0o2000000 | 0o4000
/** Created or moved here; the directory itself removed or moved; a directory, not through a link. */
const MASK = 0x100 | 0x80 | 0x400 | 0x800 | 0x1000000 | 0x2000000
/** Closed after writing. */
const WRITTEN = 0x8
const MOVED_HERE = 0x80
const MOVED = 0x800
const REMOVED = 0x400 | 0x8000
const LOST = 0x4000
const IS_DIRECTORY = 0x40000000
const MAX_WATCHES = 256
const EACCES = -13
/** Of one read. A sandbox can make names faster than pen can compare them: then one look at everything is less work. */
const MAX_EVENTS = 500
const BATCH = 64 * 1024
const BATCH_MS = 10

export type Appeared = 'file' | 'directory' | 'moved'

export interface DirectoryEvents {
  /** The name is hostile: it is only compared. `moved` is a directory from elsewhere. */
  appeared(dir: string, name: string, what: Appeared): void
  /** A file was closed that had been opened for writing, in a directory for which `set` asked for it. */
  written?(dir: string, name: string): void
  /** This watched directory was removed or moved. Without it, `doubt` is called. */
  left?(dir: string, id: number, how: 'removed' | 'moved'): void
  /** A directory was removed, or events were lost: look at everything. */
  doubt(): void
  /** There were more events than the kernel or pen can queue, and some are missing. Without it, `doubt` is called. */
  lost?(): void
}

export class DirectoryWatch {
  readonly #events: DirectoryEvents
  readonly #everyMs: number | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  #emptyAt = 0
  readonly #dirs = new Map<number, string>()
  #fd: number | undefined
  #reader: ReturnType<ReturnType<typeof streamOf>['getReader']> | undefined

  /** With `everyMs`, events are read in batches: a program that fills a large tree does not wake pen for each file. */
  constructor(events: DirectoryEvents, everyMs?: number) {
    this.#events = events
    this.#everyMs = everyMs
  }

  /** Watches exactly these directories from now on. A directory that was replaced is watched again. */
  set(dirs: Iterable<string>, withWrites: ReadonlySet<string> = new Set()): void {
    const wanted = [...dirs].slice(0, MAX_WATCHES)
    if (wanted.length > 0) this.open()
    const fd = this.#fd
    if (fd === undefined) return
    const before = new Set(this.#dirs.keys())
    for (const dir of wanted) {
      const mask = withWrites.has(dir) ? MASK | WRITTEN : MASK
      const id = tryCall('inotify_add_watch', fd, Buffer.from(`${dir}\0`), mask)
      // A locked directory gets no new watch, and keeps the one that it has.
      if (id === EACCES) for (const [old, name] of this.#dirs) if (name === dir) before.delete(old)
      if (id < 0) continue
      this.#dirs.set(id, dir)
      before.delete(id)
    }
    // Its last events still have a name. The kernel's own last one drops it.
    for (const id of before) tryCall('inotify_rm_watch', fd, id)
  }

  /**
   * Watches one more directory; `dir` is its name in events. Returns the id of the watch, or minus the errno. A directory
   * that is watched already keeps its id, also under a new name.
   */
  add(dir: string, reached: string): number {
    this.open()
    const id = tryCall('inotify_add_watch', this.#fd ?? -1, Buffer.from(`${reached}\0`), MASK)
    if (id >= 0) this.#dirs.set(id, dir)
    return id
  }

  remove(id: number): void {
    if (this.#dirs.delete(id)) tryCall('inotify_rm_watch', this.#fd ?? -1, id)
  }

  async close(): Promise<void> {
    const fd = this.#fd
    this.#fd = undefined
    clearInterval(this.#timer)
    await this.#reader?.cancel()
    if (fd !== undefined) closeSync(fd)
  }

  /** False when the user has no instance left. All sandboxes of a user share them, so one can take every instance. */
  open(): boolean {
    if (this.#fd !== undefined) return true
    const fd = tryCall('inotify_init1', CLOEXEC_NONBLOCK)
    if (fd < 0) return false
    this.#fd = fd
    if (this.#everyMs !== undefined) {
      const buffer = Buffer.allocUnsafeSlow(BATCH)
      this.#timer = setInterval(() => this.#readBatch(fd, buffer), this.#everyMs)
      this.#timer.unref()
      return true
    }
    this.#reader = streamOf(fd).getReader()
    void this.#read(this.#reader)
    return true
  }

  /** When the last batch had every event (of `performance.now()`). */
  get emptyAt(): number {
    return this.#emptyAt
  }

  /** Bounded, so that limits and the gateway get their turn. */
  #readBatch(fd: number, buffer: Buffer): void {
    for (const end = performance.now() + BATCH_MS; performance.now() < end && this.#fd === fd; ) {
      const now = performance.now()
      const filled = tryCall('read', fd, buffer, buffer.length)
      if (filled <= 0) {
        this.#emptyAt = now
        return
      }
      this.#parse(buffer.subarray(0, filled))
    }
  }

  async #read(reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> }): Promise<void> {
    for (;;) {
      const { done, value } = await reader.read()
      if (done || value === undefined) return
      this.#parse(Buffer.from(value.buffer, value.byteOffset, value.byteLength))
      // Timers have their turn, however many events there are.
      await new Promise(resolve => setImmediate(resolve))
    }
  }

  // struct inotify_event { int wd; uint32_t mask, cookie, len; char name[len] }
  #parse(bytes: Buffer): void {
    let count = 0
    for (let at = 0; at + 16 <= bytes.length; ) {
      if (++count > MAX_EVENTS && this.#events.lost !== undefined) {
        this.#events.lost()
        return
      }
      const id = bytes.readInt32LE(at)
      const dir = this.#dirs.get(id)
      const mask = bytes.readUInt32LE(at + 4)
      const end = at + 16 + bytes.readUInt32LE(at + 12)
      const name = bytes.toString('utf8', at + 16, end).replace(/\0+$/, '')
      if ((mask & LOST) !== 0) (this.#events.lost ?? this.#events.doubt)()
      else if ((mask & (MOVED | REMOVED)) !== 0)
        this.#left(dir, id, (mask & MOVED) === 0 ? 'removed' : 'moved')
      else if (dir !== undefined && (mask & WRITTEN) !== 0) this.#events.written?.(dir, name)
      else if (dir !== undefined) this.#events.appeared(dir, name, whatAppeared(mask))
      at = end
    }
  }

  #left(dir: string | undefined, id: number, how: 'removed' | 'moved'): void {
    if (how === 'removed') this.#dirs.delete(id)
    if (this.#events.left === undefined) this.#events.doubt()
    else if (dir !== undefined) this.#events.left(dir, id, how)
  }
}

const whatAppeared = (mask: number): Appeared =>
  (mask & IS_DIRECTORY) === 0 ? 'file' : (mask & MOVED_HERE) === 0 ? 'directory' : 'moved'

const streamOf = (fd: number) => Bun.file(fd).stream()

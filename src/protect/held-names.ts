/**
 * What happened to the names of held places, in order (inotify). A held place is a mount point, so no process inside can rename
 * over it or remove it. A single rename over a held file was therefore made on the host. After anything else, what is there may
 * be the sandbox's. Read only when pen looks, so an answer has every event before the look.
 */
import { closeSync } from 'node:fs'
import { tryCall } from '../base/kernel/system-call.ts'
import { dirname } from '../base/posix-path.ts'

/** `replaced`: by one rename, and not written since. */
export type Change = 'none' | 'replaced' | 'unknown'

const CLOEXEC_NONBLOCK = 0o2000000 | 0o4000
const MODIFIED = 0x2
const MOVED_HERE = 0x80
/** The directory itself was removed or moved, its file system is gone, or the watch ended. */
const LEFT = 0x400 | 0x800 | 0x2000 | 0x8000
const LOST = 0x4000
/** Also: moved away, created, removed. Only a directory, through no link, and nothing of removed files. */
const MASK = MODIFIED | MOVED_HERE | 0x40 | 0x100 | 0x200 | 0x400 | 0x800 | 0x1000000 | 0x2000000 | 0x4000000
const BATCH = 64 * 1024
/** The kernel queues fewer. A sandbox that adds events all the time does not keep pen here. */
const MAX_BATCHES = 64

export class HeldNames {
  #fd = -1
  readonly #dirs = new Map<number, string>()
  readonly #changes = new Map<string, Change>()
  /** Directories without a watch: everything in them is unknown from now on. */
  readonly #blind = new Set<string>()
  readonly #buffer = Buffer.allocUnsafeSlow(BATCH)

  constructor(paths: readonly string[]) {
    for (const path of paths) this.#changes.set(path, 'unknown')
  }

  /** For the first look of a run: an instance takes 15 ms to close, so short runs have none. What changed before is unknown. */
  open(): void {
    if (this.#fd >= 0) return
    this.#fd = tryCall('inotify_init1', CLOEXEC_NONBLOCK)
    for (const dir of new Set([...this.#changes.keys()].map(dirname))) {
      const id = tryCall('inotify_add_watch', this.#fd, Buffer.from(`${dir}\0`), MASK)
      if (id < 0) this.#blind.add(dir)
      else this.#dirs.set(id, dir)
    }
  }

  /** Since the last `settle` of this path. */
  of(path: string): Change {
    this.read()
    return this.#blind.has(dirname(path)) ? 'unknown' : (this.#changes.get(path) ?? 'unknown')
  }

  /** The path was found to have what is held there, after the last `read`. */
  settle(path: string): void {
    this.#changes.set(path, 'none')
  }

  read(): void {
    for (let batch = 0; batch < MAX_BATCHES; batch++) {
      const filled = tryCall('read', this.#fd, this.#buffer, BATCH)
      if (filled <= 0) return
      this.#parse(this.#buffer.subarray(0, filled))
    }
    this.#doubtAll()
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd)
    this.#fd = -1
  }

  // struct inotify_event { int wd; uint32_t mask, cookie, len; char name[len] }
  #parse(bytes: Buffer): void {
    for (let at = 0; at + 16 <= bytes.length; ) {
      const mask = bytes.readUInt32LE(at + 4)
      const dir = this.#dirs.get(bytes.readInt32LE(at))
      const end = at + 16 + bytes.readUInt32LE(at + 12)
      if ((mask & LOST) !== 0) this.#doubtAll()
      else if (dir !== undefined && (mask & LEFT) !== 0) this.#blind.add(dir)
      else if (dir !== undefined) {
        const name = bytes.toString('utf8', at + 16, end).replace(/\0+$/, '')
        this.#note(`${dir}/${name}`, mask)
      }
      at = end
    }
  }

  #note(path: string, mask: number): void {
    const before = this.#changes.get(path)
    if (before === undefined) return
    // The host may write what is held.
    if (before === 'none' && (mask & MODIFIED) !== 0) return
    this.#changes.set(path, before === 'none' && (mask & MOVED_HERE) !== 0 ? 'replaced' : 'unknown')
  }

  #doubtAll(): void {
    for (const path of this.#changes.keys()) this.#changes.set(path, 'unknown')
  }
}

/**
 * Measures what was created below some directories since a point in time. A sandbox writes the tree: it may be huge, change
 * during the walk, and contain misleading links and names. No link is followed and no other file system is entered.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  type Stats,
  statSync,
} from 'node:fs'
import { directoryEntries } from '../base/beneath/directory-entries.ts'
import { errnoOf } from '../base/error.ts'
import { descriptorsOf, type Member } from '../base/kernel/processes.ts'

/** The least that a file counts, because an empty file still takes an inode. */
export const LEAST_PER_FILE = 4096

const SLICE_MS = 8
const MOST_LINKS = 100_000
const MOST_DESCRIPTORS = 20_000

interface GrowthOptions {
  readonly trees: readonly string[]
  /** Milliseconds since 1970. */
  readonly since: number
  /** Stop when the sum reaches this. */
  readonly enough: number
  /** Visit every file, also in unchanged directories, to find old files that grew. */
  readonly everything: boolean
}

export interface Growth {
  /** Bytes in files that are new. */
  readonly made: number
  /** Bytes in older files that changed. How many of those bytes are new is unknown. */
  readonly changed: number
  /** Some directory could not be read. */
  readonly blind: boolean
}

export async function measureGrowth(options: GrowthOptions): Promise<Growth> {
  const sum = new Sum(options.since)
  let sliceEnds = performance.now() + SLICE_MS
  for (const tree of options.trees) {
    const device = deviceOf(tree)
    const stack = device === undefined ? [] : [tree]
    for (let dir = stack.pop(); dir !== undefined; dir = stack.pop()) {
      for (const below of visit(dir, device as number, sum, options.everything)) {
        if (below !== undefined) stack.push(below)
        if (sum.made >= options.enough) return sum
        if (performance.now() < sliceEnds) continue
        await new Promise(resolve => setImmediate(resolve))
        sliceEnds = performance.now() + SLICE_MS
      }
    }
  }
  return sum
}

/** Unlinked files that the sandbox's processes hold open. They take disk space, and no listing shows them. */
export function measureUnlinked(
  members: readonly Member[],
  devices: ReadonlySet<number>,
  since: number,
): Growth {
  const sum = new Sum(since)
  let left = MOST_DESCRIPTORS
  for (const { pid } of members)
    for (const path of descriptorsOf(pid)) {
      if (left-- <= 0) {
        sum.blind = true
        return sum
      }
      const stat = quietly(() => statSync(path))
      if (stat?.isFile() && stat.nlink === 0 && devices.has(stat.dev)) sum.add(stat, true)
    }
  return sum
}

class Sum implements Growth {
  made = 0
  changed = 0
  blind = false
  readonly #since: number
  readonly #seen = new Set<string>()

  constructor(since: number) {
    this.#since = since
  }

  isRecent(stat: Stats): boolean {
    return stat.ctimeMs >= this.#since
  }

  add(stat: Stats, shared = stat.nlink > 1 && !stat.isDirectory()): void {
    if (!this.isRecent(stat)) return
    if (shared) {
      const key = `${stat.dev}:${stat.ino}`
      if (this.#seen.has(key)) return
      if (this.#seen.size < MOST_LINKS) this.#seen.add(key)
    }
    const bytes = Math.max(stat.blocks * 512, LEAST_PER_FILE)
    // A file system without birth times reports 0, so the file counts as an older one.
    if (stat.birthtimeMs >= this.#since) this.made += bytes
    else this.changed += bytes
  }
}

/** Yields subdirectories, and undefined for every other entry, so that the caller can pause: a directory may be huge. */
function* visit(dir: string, device: number, sum: Sum, everything: boolean): Visit {
  let fd: number
  try {
    fd = openSync(dir, constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    // Gone or no longer a directory: nothing to count. Not accessible or too deep: something may be hidden there.
    if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) sum.blind = true
    return
  }
  try {
    const stat = fstatSync(fd)
    // A directory above may have been replaced with a link since it was listed.
    if (readlinkSync(`/proc/self/fd/${fd}`) !== dir) return
    if (stat.dev !== device && isMounted(stat.dev)) return
    sum.add(stat)
    yield undefined
    const recent = sum.isRecent(stat)
    // Two links mean no subdirectories. An unchanged directory has no new file.
    if (!recent && !everything && stat.nlink === 2) return
    yield* entries(fd, dir, sum, recent || everything)
  } catch {
    sum.blind = true
  } finally {
    closeSync(fd)
  }
}

function* entries(fd: number, dir: string, sum: Sum, files: boolean): Visit {
  for (const { name, type } of directoryEntries(fd)) {
    const text = name.toString()
    const path = `${dir}/${text}`
    // A non-UTF-8 name cannot be opened by its text.
    if (text.includes('\ufffd')) sum.blind = true
    if (type === 'directory') yield path
    else if (files || type === 'unknown') {
      const stat = quietly(() => lstatSync(path))
      if (stat?.isDirectory()) yield path
      else if (stat !== undefined && files) sum.add(stat)
    }
    yield undefined
  }
}

type Visit = Generator<string | undefined, void, void>

/** Snapshots and subvolumes have their own device numbers without a mount. The walk enters those. */
function isMounted(device: number): boolean {
  const major = ((device >>> 8) & 0xfff) | (Math.floor(device / 2 ** 32) & 0xfffff000)
  const minor = (device & 0xff) | ((device >>> 12) & 0xfff00)
  const mounts = quietly(() => readFileSync('/proc/self/mountinfo', 'utf8')) ?? ''
  return mounts.includes(` ${major}:${minor} `)
}

export const deviceOf = (path: string): number | undefined =>
  quietly(() => lstatSync(path, { throwIfNoEntry: false }))?.dev

function quietly<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

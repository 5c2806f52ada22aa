/**
 * Sorts protected places: a backend holds those that exist by a mount, and the supervisor watches the others. This runs
 * on the host before the sandbox starts. An earlier run may have planted links, so the kernel never follows one. Each
 * component is examined with lstat, and a link's target is resolved here, inside the root only.
 */
import type { BigIntStats } from 'node:fs'
import { lookAt } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { linkTarget, linkText, MAX_LINKS } from './links.ts'
import { type ListedNames, listNames } from './listed-names.ts'

/** What may exist at a watched place. */
export type PlaceRule =
  | { readonly kind: 'nothing' }
  /** A directory through which a path leads: anything but a link. */
  | { readonly kind: 'no-link' }
  /** A repository that is made during the run may stay; a `.git` file or link to one may not. */
  | { readonly kind: 'git-dir' }
  /** May hold harmless settings, and settings that it held before. */
  | { readonly kind: 'git-config'; readonly known: readonly string[] }
  /** May hold only git's own samples. */
  | { readonly kind: 'git-hooks' }
  /** The index of a repository that is made during the run: git enters a repository at each gitlink. */
  | { readonly kind: 'git-index' }
  /** A `.git` file may name only this directory. */
  | { readonly kind: 'git-pointer'; readonly to: string }
  /** Only the link that was there at the start. */
  | { readonly kind: 'link'; readonly text: string }

export interface Watched {
  readonly path: string
  /** A directory whose own path the sandbox cannot change. The walk to `path` starts here. */
  readonly root: string
  readonly rule: PlaceRule
}

/** An existing place that is mounted read-only on itself. Its identity shows when the host has replaced it. */
export interface Held extends Watched {
  readonly type: 'file' | 'dir'
  readonly dev: bigint
  readonly ino: bigint
  /** Creation time: a file system reuses the inode of a removed file. */
  readonly born: bigint
}

export interface PlacesFound {
  readonly protect: readonly Held[]
  /** Directories that are bind-mounted on themselves: a mount point can be neither renamed nor removed. */
  readonly pins: readonly string[]
  readonly watch: readonly Watched[]
}

export const NOTHING: PlaceRule = { kind: 'nothing' }

export class Places {
  readonly #held = new Map<string, Held>()
  readonly #pinned = new Map<string, { readonly path: string; readonly root: string }>()
  readonly #watch = new Map<string, Watched>()
  readonly #seen = new Map<string, BigIntStats | undefined>()
  readonly #roots: readonly string[]
  readonly #madeBeside: () => ReadonlySet<string>
  #listed: { readonly prefix: string; readonly names: ListedNames } | undefined

  /**
   * `roots`: all directories that the sandbox may write. `madeBeside`: places that were absent when a sandbox began that runs
   * now. It may have made what is there.
   */
  constructor(roots: readonly string[] = [], madeBeside: () => ReadonlySet<string> = () => new Set()) {
    this.#roots = roots
    this.#madeBeside = madeBeside
  }

  pin(path: string, root: string): void {
    this.#pinned.set(path, { path, root })
  }

  /** Protects `path`, which is below `root`. The first rule for a place counts. */
  add(path: string, root: string, rule: PlaceRule = NOTHING, links = 0): void {
    if (!path.startsWith(`${root}/`)) return
    for (let end = root.length; end < path.length; ) {
      const slash = path.indexOf('/', end + 1)
      end = slash < 0 ? path.length : slash
      const prefix = path.slice(0, end)
      const stats = this.look(prefix)
      if (stats?.isSymbolicLink()) {
        this.#addLink(prefix, path.slice(end), root, rule, links)
        return
      }
      if (stats === undefined || (slash >= 0 && !stats.isDirectory())) {
        this.watch(path, root, rule)
        return
      }
      if (slash < 0 && !this.#held.has(path)) this.#hold(path, root, rule, stats)
    }
  }

  /** For places that are too many to mount: the supervisor compares their content with the rule during the run. */
  watch(path: string, root: string, rule: PlaceRule): void {
    if (!this.#watch.has(path)) this.#watch.set(path, { path, root, rule })
  }

  /** The names in a small directory, listed once: most protected places are absent and need no look-up each. */
  list(dir: string): void {
    const names = listNames(dir)
    if (names !== undefined) this.#listed = { prefix: `${dir}/`, names }
  }

  look(path: string): BigIntStats | undefined {
    if (this.#listed !== undefined && path.startsWith(this.#listed.prefix)) {
      const [first = ''] = path.slice(this.#listed.prefix.length).split('/', 1)
      if (!this.#listed.names.mayHave(first)) return undefined
    }
    if (this.#seen.has(path)) return this.#seen.get(path)
    const stats = lookAt(path)
    this.#seen.set(path, stats)
    return stats
  }

  /** Shallow before deep, without duplicates, and without places below one that is already read-only. */
  found(): PlacesFound {
    const free = ({ path, root }: { path: string; root: string }): boolean => {
      for (let up = above(path); up.length > root.length; up = above(up)) if (this.#held.has(up)) return false
      return true
    }
    const pins = [...this.#pinned.values()].filter(pin => free(pin) && !this.#held.has(pin.path))
    return {
      protect: [...this.#held.values()].filter(free).sort(byPath),
      pins: pins.sort(byPath).map(pin => pin.path),
      watch: [...this.#watch.values()].filter(free),
    }
  }

  #hold(path: string, root: string, rule: PlaceRule, stats: BigIntStats): void {
    refuseHardLink(path, stats, 'protected')
    const type = stats.isDirectory() ? 'dir' : 'file'
    const { dev, ino, birthtimeNs: born } = stats
    this.#held.set(path, { path, root, rule, type, dev, ino, born })
    for (let up = above(path); up.length > root.length; up = above(up)) this.pin(up, root)
  }

  // Nothing can be mounted on a link: it is watched, and its target is protected too when it is inside a root.
  #addLink(link: string, rest: string, root: string, rule: PlaceRule, links: number): void {
    const text = linkText(link)
    if (text === undefined) return
    // Its own pen moves such a link, and so does this one: it is not put back as the user's.
    if (this.#madeBeside().has(link + rest)) {
      this.watch(link + rest, root, rule)
      return
    }
    this.watch(link, root, { kind: 'link', text })
    if (links >= MAX_LINKS) return
    const target = linkTarget(link, text) + rest
    this.add(target, this.#roots.find(one => target.startsWith(`${one}/`)) ?? root, rule, links + 1)
  }
}

const byPath = (a: { path: string }, b: { path: string }): number =>
  a.path < b.path ? -1 : a.path > b.path ? 1 : 0

const above = (path: string): string => path.slice(0, path.lastIndexOf('/'))

/**
 * A mount covers a path, not a file. A file with another hard link can be read and written through that link. The sandbox
 * may have made the link in an earlier run, when the file was its own. So pen does not count such a file as covered.
 */
export function refuseHardLink(path: string, stats: BigIntStats, held: 'protected' | 'denied'): void {
  if (!stats.isFile() || stats.nlink <= 1n) return
  const danger = held === 'denied' ? 'read it' : 'change it'
  throw new PenError('PATH_REFUSED', {
    what: `this file is ${held}, but has ${stats.nlink - 1n === 1n ? 'a second name' : `${stats.nlink - 1n} other names`} (hard links), and by another name a sandbox could ${danger}`,
    at: path,
    hint: 'look at what it says, then make it a file of its own: cp -p FILE FILE.new && mv FILE.new FILE',
  })
}

/**
 * Takes away what appears at protected places while a sandbox runs: a mount can only hold what exists, and no stub may
 * be put on the host. Everything at a watched place was made by the sandbox, and may be swapped between two calls.
 */
import { appendFileSync, closeSync, mkdirSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { itself, openDirectory, type Spot, withSpot } from './beneath.ts'
import { type GitTree, removeLinks } from './git-links.ts'
import { listNames } from './listed-names.ts'
import { isAllowed } from './place-rule.ts'
import type { Held, Watched } from './places.ts'
import { takeAway } from './take-away.ts'
import { disarmTree } from './tree.ts'
import { type Place, place, putBack, putLinkBack, remember } from './watched-place.ts'

export interface Moved {
  readonly kind: 'moved'
  /** Where it stood: the protected place, or a link on the way to it. */
  readonly path: string
  /** Where it is now; null when it could not be kept. */
  readonly to: string | null
  readonly what: string
  /** What was put back in its place: the content or link that stood there before. */
  readonly restored: boolean
}

/** A held file was replaced or removed on the host, which ends its mount inside the sandbox. */
export interface Lost {
  readonly kind: 'lost'
  readonly path: string
  readonly gone: boolean
}

/** Something stands at a protected place and cannot be moved. */
export interface Stuck {
  readonly kind: 'stuck'
  readonly path: string
  readonly why: string
}

/** A link that stood there was removed, and was put back: what it leads to is kept by its name. */
export interface Back {
  readonly kind: 'back'
  readonly path: string
}

export type QuarantineEvent = Moved | Lost | Stuck | Back

export interface QuarantineOptions {
  readonly watch: readonly Watched[]
  readonly held?: readonly Held[]
  readonly trees?: readonly GitTree[]
  /** A directory of this run's own, on the host, outside every mount; made when it is first needed. */
  readonly dir: string
  readonly tell: (event: QuarantineEvent) => void
}

/** A sandbox that plants again and again must not fill the disk: after this many, things are removed instead of kept. */
const MAX_KEPT = 100
const MAX_KEPT_BYTES = 256 * 1024 * 1024

export class Quarantine {
  readonly #options: QuarantineOptions
  readonly #places: Place[]
  readonly #roots = new Map<string, number>()
  readonly #left = { kept: MAX_KEPT, bytes: MAX_KEPT_BYTES }
  readonly #kept: string[] = []
  #count = 0
  #links = 0
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: QuarantineOptions) {
    this.#options = options
    this.#places = [
      ...options.watch.map(w => place(w, undefined)),
      ...(options.held ?? []).map(h => place(h, { dev: h.dev, ino: h.ino })),
    ]
    for (const { root } of [...this.#places, ...(options.trees ?? [])]) {
      if (this.#roots.has(root)) continue
      const fd = openDirectory(root)
      if (fd !== undefined) this.#roots.set(root, fd)
    }
    for (const p of this.#places)
      if (p.identity !== undefined && p.rule.kind === 'git-config') this.#spot(p, spot => remember(p, spot))
  }

  /** One look at every place. Call it a last time, for all, when no process of the sandbox is left: then nothing can race it. */
  sweep(extent: 'busy' | 'all' = 'all'): readonly QuarantineEvent[] {
    const events: QuarantineEvent[] = this.#unlink(extent)
    const listed = new Map([...this.#roots].map(([root, fd]) => [root, listNames(itself(fd))]))
    for (const p of this.#places) {
      // Most places are absent, before as after: one listing answers for all of them.
      const isAbsent = listed.get(p.root)?.mayHave(p.names[0] ?? '') === false
      if (p.identity === undefined && p.rule.kind !== 'link' && isAbsent) {
        p.spared = false
        continue
      }
      const event = p.identity === undefined ? this.#check(p) : this.#checkHeld(p)
      if (event === undefined) continue
      events.push(event)
      this.#options.tell(event)
    }
    return events
  }

  start(intervalMs = 250): void {
    this.#timer ??= setInterval(() => this.sweep('busy'), intervalMs)
    this.#timer.unref()
  }

  /** Call after the last sweep, when no process of the sandbox is left: it gives up the descriptors. */
  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const fd of this.#roots.values()) closeSync(fd)
    this.#roots.clear()
    this.#disarmAgain()
  }

  /**
   * After the keeper mounted a lost place anew: what is there now is what it holds. Between the loss and the mount the
   * sandbox could write or open it, so what can be judged by content is judged, now and from now on.
   */
  hold(path: string): void {
    const found = this.#places.find(p => p.path === path)
    if (found === undefined) return
    found.regained = found.rule.kind !== 'nothing'
    const event = found.regained ? this.#check(found) : undefined
    if (event !== undefined) {
      found.identity = undefined
      this.#options.tell(event)
      return
    }
    this.#spot(found, ({ stats }) => {
      found.identity = { dev: stats.dev, ino: stats.ino }
      found.spared = false
    })
  }

  // A process that had a moved directory open could still write into it, until it ended.
  #disarmAgain(): void {
    const store = this.#kept.length === 0 ? undefined : openDirectory(this.#options.dir)
    if (store === undefined) return
    const budget = { entries: 20_000, bytes: Number.POSITIVE_INFINITY }
    for (const label of this.#kept.splice(0)) disarmTree(store, label, budget)
    closeSync(store)
  }

  #unlink(extent: 'busy' | 'all'): QuarantineEvent[] {
    const events: QuarantineEvent[] = []
    for (const tree of this.#options.trees ?? []) {
      const root = this.#roots.get(tree.root)
      for (const { path, to } of root === undefined ? [] : removeLinks(root, tree, extent)) {
        // Made again and again, they are removed all the same.
        if (this.#links++ >= MAX_KEPT) continue
        const what = `link to ${printable(to, 1024)}`
        const event: Moved = { kind: 'moved', path, to: null, what, restored: false }
        events.push(event)
        this.#options.tell(event)
      }
    }
    return events
  }

  #spot<T>(p: Place, act: (spot: Spot) => T): T | undefined {
    const root = this.#roots.get(p.root)
    return root === undefined ? undefined : withSpot(root, p.names, act)
  }

  #checkHeld(p: Place): QuarantineEvent | undefined {
    const now = this.#spot(p, ({ stats }) => stats)
    if (now !== undefined && now.dev === p.identity?.dev && now.ino === p.identity.ino)
      return p.regained ? this.#check(p) : undefined
    p.identity = undefined
    p.spared = now !== undefined && p.rule.kind === 'nothing'
    return { kind: 'lost', path: p.path, gone: now === undefined }
  }

  #check(p: Place): QuarantineEvent | undefined {
    const seen = this.#spot(p, spot => {
      if (p.spared) return 'fine'
      // Judged anew each time: a mapped file can change without a new time stamp.
      if (spot.depth < p.names.length || !isAllowed(p.rule, spot, p.path)) return this.#take(p, spot)
      if (p.rule.kind === 'git-config') remember(p, spot)
      return 'fine'
    })
    if (seen !== undefined) return seen === 'fine' ? undefined : seen
    p.spared = false
    const root = this.#roots.get(p.root)
    if (root === undefined || !putLinkBack(p, root) || p.told) return undefined
    p.told = true
    return { kind: 'back', path: p.path }
  }

  #take(p: Place, spot: Spot): QuarantineEvent | undefined {
    const path = `${p.root}/${p.names.slice(0, spot.depth).join('/')}`
    const keep = this.#left.kept > 0
    const label = `${String(++this.#count).padStart(4, '0')}-${spot.name}`
    try {
      mkdirSync(this.#options.dir, { recursive: true, mode: 0o700 })
      const taken = takeAway(spot, this.#options.dir, label, keep ? this.#left : undefined)
      if (taken === undefined) return undefined
      this.#left.kept--
      if (taken.to !== null) this.#kept.push(label)
      const moved: Moved = {
        kind: 'moved',
        path,
        ...taken,
        restored: spot.depth === p.names.length && putBack(p, spot),
      }
      const line = JSON.stringify({ time: new Date().toISOString(), ...moved, path: printable(path, 4096) })
      appendFileSync(`${this.#options.dir}/manifest.jsonl`, `${line}\n`, { mode: 0o600 })
      return moved
    } catch (error) {
      const why = errnoOf(error)
      if (why === undefined) throw error
      if (p.stuck) return undefined
      p.stuck = true
      return { kind: 'stuck', path, why }
    }
  }
}

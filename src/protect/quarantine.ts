/**
 * Moves files away that appear at protected places while a sandbox runs. A mount can only protect what exists, and pen puts
 * no stub files on the host. Everything at a watched place is hostile and may be swapped between two calls.
 */
import { closeSync, mkdirSync, readdirSync } from 'node:fs'
import { itself, openDirectory, type Spot, withSpot } from '../base/beneath/beneath.ts'
import { Unseen } from '../base/beneath/look-at.ts'
import { disarmTree } from '../base/beneath/tree.ts'
import { errnoOf } from '../base/error.ts'
import { listNames } from '../survey/listed-names.ts'
import type { Held, Watched } from '../survey/places.ts'
import { moveOut } from './move-out.ts'
import { isAllowed } from './place-rule.ts'
import { type Settled, Settling } from './settling.ts'
import { inSlices } from './slices.ts'
import { asideNames } from './watch-record.ts'
import { isTheFirst, type Place, place, putBack, putLinkBack, remember } from './watched-place.ts'

export interface Moved {
  readonly kind: 'moved'
  /** Where it was: the protected place, or a link on the way to it. */
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

/** An entry at a protected place cannot be moved, or pen could not look at the place (unseen). */
export interface Stuck {
  readonly kind: 'stuck' | 'unseen'
  readonly path: string
  readonly why: string
  /** It was renamed in its own directory, to a name that no program reads. */
  readonly aside?: string
}

/** A moved entry was too large to keep (removed), or the run ended before it was processed (left). */
export interface Unkept {
  readonly kind: 'unkept'
  readonly path: string
  readonly how: 'partly' | 'removed' | 'left'
}

/** A link from a denied name was removed and has been restored: without it the next run would not deny its target. */
export interface Back {
  readonly kind: 'back'
  readonly path: string
}

export type QuarantineEvent = Moved | Lost | Stuck | Unkept | Back

/** Something of the sandbox is still in the project, or may be. */
export const isUndone = (event: QuarantineEvent): boolean =>
  event.kind === 'stuck' || event.kind === 'unseen' || (event.kind === 'unkept' && event.how === 'left')

export interface QuarantineOptions {
  readonly watch: readonly Watched[]
  readonly held?: readonly Held[]
  /** A directory for this run on the host, outside every mount. */
  readonly dir: string
  /** Names for things that cannot be moved there. The record of the run has them. */
  readonly asides?: readonly string[]
  readonly tell: (event: QuarantineEvent) => void
}

/** A sandbox that plants again and again must not fill the disk: after this many, things are removed instead of kept. */
const MAX_KEPT = 100
const MAX_KEPT_BYTES = 256 * 1024 * 1024
/** `pen stop` waits for the end of a run, so each part has this long. Unfinished work is reported. */
const FINISH_MS = 300

export class Quarantine {
  readonly #options: QuarantineOptions
  readonly #places: Place[]
  readonly #roots = new Map<string, number>()
  readonly #left = { kept: MAX_KEPT, bytes: MAX_KEPT_BYTES }
  readonly #settling: Settling
  readonly #kept: string[] = []
  /** Entries that were reported with their quarantine path. */
  readonly #promised = new Set<string>()
  /** As of the last sweep: places that pen could not look at, and why. */
  readonly #unseen = new Map<string, string>()
  readonly #asides: readonly string[]
  /** The places and what leads to them, in lower case. */
  readonly #named = new Set<string>()
  readonly #hooks = new Set<string>()
  #count = 0

  constructor(options: QuarantineOptions) {
    this.#options = options
    this.#asides = options.asides ?? asideNames()
    this.#places = [
      ...options.watch.map(w => place(w, undefined)),
      ...(options.held ?? []).map(h => place(h, h)),
    ]
    for (const { root } of this.#places) {
      if (this.#roots.has(root)) continue
      const fd = openDirectory(root)
      if (fd !== undefined) this.#roots.set(root, fd)
    }
    for (const { root, names, path, rule } of this.#places) {
      for (let i = 1; i <= names.length; i++)
        this.#named.add(`${root}/${names.slice(0, i).join('/')}`.toLowerCase())
      if (rule.kind === 'git-hooks') this.#hooks.add(path)
    }
    this.#settling = new Settling(settled => this.#settled(settled))
    for (const p of this.#places)
      if (p.identity !== undefined && p.rule.kind === 'git-config') this.#spot(p, spot => remember(p, spot))
  }

  /** Looks at every place once, in bounded time. A place that pen could not see is checked again in the next sweep. */
  sweep(): readonly QuarantineEvent[] {
    const events: QuarantineEvent[] = []
    this.#unseen.clear()
    const listed = new Map([...this.#roots].map(([root, fd]) => [root, listNames(itself(fd))]))
    for (const p of this.#places) {
      // Most places are still absent: one listing answers for all of them.
      const isAbsent = listed.get(p.root)?.mayHave(p.names[0] ?? '') === false
      if (p.identity === undefined && p.rule.kind !== 'link' && isAbsent) {
        p.spared = false
        continue
      }
      const event = this.#look(p)
      if (event === undefined) continue
      events.push(event)
      this.#options.tell(event)
    }
    return events
  }

  /** Directories in which a new name can be a protected place, or lead to one. */
  directories(): ReadonlySet<string> {
    const all = new Set<string>()
    for (const { root, names, rule, path } of this.#places) {
      all.add(root)
      for (let i = 1; i < names.length; i++) all.add(`${root}/${names.slice(0, i).join('/')}`)
      if (rule.kind === 'git-hooks') all.add(path)
    }
    return all
  }

  /** Whether a new name matters. A sandbox can make many thousands in a second. */
  concerns(dir: string, name: string): boolean {
    return this.#named.has(`${dir}/${name}`.toLowerCase()) || this.#hooks.has(dir)
  }

  /** The last look, after every process of the sandbox is gone, so nothing can race it. Unfinished work is reported. */
  async finish(withinMs = FINISH_MS): Promise<void> {
    this.sweep()
    for (const [path, why] of this.#unseen) this.#options.tell({ kind: 'unseen', path, why })
    await this.#settling.finish(withinMs)
    await this.#disarmAgain(performance.now() + withinMs)
    this.stop()
  }

  /** Resolves when everything moved so far is disarmed or removed. */
  async settled(): Promise<void> {
    await this.#settling.finish(Number.POSITIVE_INFINITY)
  }

  /** Closes the descriptors. */
  stop(): void {
    for (const fd of this.#roots.values()) closeSync(fd)
    this.#roots.clear()
  }

  /**
   * Called after the supervisor mounted a lost place again: the file that is there now is protected. Between the loss and the
   * mount the sandbox could write or open it. So its content is checked now and from now on, where a rule allows that.
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
      found.identity = { dev: stats.dev, ino: stats.ino, born: stats.birthtimeNs }
      found.spared = false
    })
  }

  // A process that had a moved directory open could still write into it, until it ended.
  async #disarmAgain(deadline: number): Promise<void> {
    const store = this.#kept.length === 0 ? undefined : openDirectory(this.#options.dir)
    if (store === undefined) return
    const budget = { entries: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
    try {
      for (const label of this.#kept.splice(0)) {
        const done = await inSlices(disarmTree(store, label, budget), () => deadline)
        if (done === undefined)
          this.#options.tell({ kind: 'unkept', path: `${this.#options.dir}/${label}`, how: 'left' })
      }
    } finally {
      closeSync(store)
    }
  }

  #settled({ to, how, aside }: Settled): void {
    if (how === 'kept') this.#kept.push(to.slice(this.#options.dir.length + 1))
    else if (how === 'full') this.#options.tell({ kind: 'stuck', path: to, why: 'ENOSPC', aside })
    // A removal is reported only when the entry's quarantine path was announced before.
    else if (how !== 'removed' || this.#promised.has(to))
      this.#options.tell({ kind: 'unkept', path: to, how })
  }

  #look(p: Place): QuarantineEvent | undefined {
    try {
      return p.identity === undefined ? this.#check(p) : this.#checkHeld(p)
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
      this.#unseen.set(p.path, error.errno)
      return undefined
    }
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
      if (isTheFirst(p, spot)) {
        // The file of the start is back at its place.
        p.identity = p.first
        return 'fine'
      }
      // Checked every time: a memory-mapped file can change without a new timestamp.
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
    const { dir } = this.#options
    const keep = this.#left.kept > 0
    try {
      mkdirSync(dir, { recursive: true, mode: 0o700 })
      this.#count ||= lastNumber(dir)
      const label = `${String(++this.#count).padStart(4, '0')}-${spot.name}`
      const aside = this.#asides[this.#count % this.#asides.length] ?? ''
      const taken = moveOut(spot, { dir, label, aside }, keep ? this.#left : undefined)
      if (taken === undefined) return undefined
      const place = `${path.slice(0, path.lastIndexOf('/'))}/${taken.aside}`
      if (taken.rest === undefined) return { kind: 'stuck', path, why: taken.why, aside: place }
      this.#left.kept--
      const to = `${dir}/${label}`
      if (keep) this.#promised.add(to)
      this.#settling.add({ to, aside: place, rest: taken.rest })
      const restored = spot.depth === p.names.length && putBack(p, spot)
      return { kind: 'moved', path, to: keep ? to : null, what: taken.what, restored }
    } catch (error) {
      const why = errnoOf(error)
      if (why === undefined) throw error
      if (p.stuck) return undefined
      p.stuck = true
      return { kind: 'stuck', path, why }
    }
  }
}

/** What a killed run moved is still there, and must not be in the way of what is moved now. */
const lastNumber = (dir: string): number =>
  readdirSync(dir).reduce((last, name) => Math.max(last, Number.parseInt(name, 10) || 0), 0)

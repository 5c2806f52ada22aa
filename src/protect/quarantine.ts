/**
 * Moves files away that appear at protected places while a sandbox runs. A mount can only protect what exists, and pen puts
 * no stub files on the host. Everything at a watched place is hostile and may be swapped between two calls.
 */
import { type BigIntStats, closeSync, mkdirSync, readdirSync } from 'node:fs'
import { itself, openDirectory, type Spot, withSpot } from '../base/beneath/beneath.ts'
import { Unseen } from '../base/beneath/look-at.ts'
import { errnoOf } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import { type ListedNames, listNames } from '../survey/listed-names.ts'
import type { Held, Watched } from '../survey/places.ts'
import { HeldNames } from './held-names.ts'
import { moveOut } from './move-out.ts'
import { isAllowed, isJudged } from './place-rule.ts'
import type { Lost, QuarantineEvent } from './quarantine-event.ts'
import { identityOf, isSame, type Place, place, putBack, putLinkBack, remember } from './watched-place.ts'

export interface QuarantineOptions {
  readonly watch: readonly Watched[]
  readonly held?: readonly Held[]
  /** A directory for this run on the host, outside every mount. */
  readonly dir: string
  /** The sandbox has mounts, so no process inside can remove or replace what is held. */
  readonly hasMounts?: boolean
  readonly tell: (event: QuarantineEvent) => void
  /** Nothing holds this place any more. Called before what is there is moved. */
  readonly onLost?: (place: Watched) => void
}

export class Quarantine {
  readonly #options: QuarantineOptions
  readonly #places: Place[]
  readonly #roots = new Map<string, number>()
  /** As of the last sweep: places that pen could not look at, and why. */
  readonly #unseen = new Map<string, string>()
  readonly #changes: HeldNames | undefined
  #life: 'first look' | 'running' | 'last look' = 'first look'
  /** The places and what leads to them, in lower case. */
  readonly #named = new Set<string>()
  readonly #hooks = new Set<string>()
  #count = 0

  constructor(options: QuarantineOptions) {
    this.#options = options
    this.#places = [
      ...options.watch.map(w => place(w, undefined)),
      ...(options.held ?? []).map(h => place(h, h)),
    ]
    // First in each look: nothing before it warns a sandbox that changes them between two looks.
    this.#places.sort((a, b) => Number(isJudged(b.rule)) - Number(isJudged(a.rule)))
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
    const held = this.#places.filter(p => p.identity !== undefined)
    if (options.hasMounts === true && held.length > 0)
      this.#changes = new HeldNames(held.map(({ path }) => path))
    // Nothing runs inside yet: what is there now is the user's.
    for (const p of held)
      p.identity =
        this.#spot(p, ({ stats, depth }) => (depth < p.names.length ? undefined : identityOf(stats))) ??
        p.identity
    for (const p of this.#places)
      if (p.identity !== undefined && p.rule.kind === 'git-config') this.#spot(p, spot => remember(p, spot))
  }

  /** Looks at every place once, in bounded time. A place that pen could not see is checked again in the next sweep. */
  sweep(): readonly QuarantineEvent[] {
    const events: QuarantineEvent[] = []
    this.#unseen.clear()
    if (this.#life === 'first look') this.#changes?.open()
    this.#changes?.read()
    let listed: ReadonlyMap<string, ListedNames | undefined> | undefined
    for (const p of this.#places) {
      if (!isJudged(p.rule)) {
        // Most places are still absent: one listing answers for all of them.
        listed ??= new Map([...this.#roots].map(([root, fd]) => [root, listNames(itself(fd))]))
        const isAbsent = listed.get(p.root)?.mayHave(p.names[0] ?? '') === false
        if (p.identity === undefined && p.rule.kind !== 'link' && isAbsent) continue
      }
      const event = this.#look(p)
      if (event === undefined) continue
      events.push(event)
      this.#options.tell(event)
    }
    if (this.#life === 'first look') this.#life = 'running'
    return events
  }

  /** Places that are held, or are to be held again. */
  held(): string[] {
    return this.#places.flatMap(({ path, identity }) => (identity === undefined ? [] : [path]))
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

  /** A watched file whose content is judged: its place, if this is one. */
  judged(dir: string, name: string): string | undefined {
    return this.#places.find(({ rule, path }) => isJudged(rule) && path === `${dir}/${name}`)?.path
  }

  /** Directories of files whose content is judged. */
  judgedIn(): ReadonlySet<string> {
    return new Set(this.#places.flatMap(({ rule, path }) => (isJudged(rule) ? [dirname(path)] : [])))
  }

  /** Whether a new name matters. A sandbox can make many thousands in a second. */
  concerns(dir: string, name: string): boolean {
    return this.#named.has(`${dir}/${name}`.toLowerCase()) || this.#hooks.has(dir)
  }

  /** The last look, after every process of the sandbox is gone, so nothing can race it. */
  finish(): void {
    this.#life = 'last look'
    this.sweep()
    for (const [path, why] of this.#unseen) this.#options.tell({ kind: 'unseen', path, why })
    this.stop()
  }

  /** Closes the descriptors. */
  stop(): void {
    for (const fd of this.#roots.values()) closeSync(fd)
    this.#roots.clear()
    this.#changes?.close()
  }

  /**
   * Called after the supervisor mounted a replaced place again. `closed` is the file there, if no process inside has it open. True
   * when it stays: it is certain to be the user's, or its content is judged from now on. Otherwise it is moved.
   */
  hold(path: string, closed: { readonly dev: bigint; readonly ino: bigint } | undefined): boolean {
    const p = this.#places.find(one => one.path === path)
    if (p === undefined) return false
    const now = this.#spot(p, ({ stats }) => stats)
    const isJudged = p.rule.kind !== 'nothing'
    const isUsers =
      now !== undefined && closed?.dev === now.dev && closed.ino === now.ino && this.#isByHost(p, now)
    p.regained = isJudged
    if (!isJudged && !isUsers) this.#lose(p)
    const event = isUsers && !isJudged ? undefined : this.#check(p)
    if (event !== undefined) this.#options.tell(event)
    const stays = event === undefined && (isUsers || (isJudged && now !== undefined))
    p.identity = stays ? identityOf(now) : undefined
    if (stays) this.#changes?.settle(path)
    return stays
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
    if (now !== undefined && p.identity !== undefined && isSame(identityOf(now), p.identity)) {
      // Later, it may have been away in between, and then it has no mount: see `hold`.
      if (this.#life === 'first look') this.#changes?.settle(p.path)
      return p.regained ? this.#check(p) : undefined
    }
    const lost: Lost = { kind: 'lost', path: p.path, gone: now === undefined }
    if (now === undefined || p.rule.kind !== 'nothing') {
      this.#lose(p)
      return lost
    }
    if (!this.#isByHost(p, now)) {
      this.#lose(p)
      return this.#check(p)
    }
    // Until it is held again, see `hold`. After the last process it needs no mount.
    if (this.#changes === undefined || this.#life === 'last look') p.identity = identityOf(now)
    return lost
  }

  /** Whether what is at a held place was put there by the host. Without mounts, no process inside could. */
  #isByHost({ path }: Place, now: BigIntStats): boolean {
    if (this.#changes === undefined) return true
    return now.isFile() && now.nlink === 1n && this.#changes.of(path) === 'replaced'
  }

  #lose(p: Place): void {
    p.identity = undefined
    p.mayBeUsers = true
    this.#options.onLost?.(p)
  }

  #check(p: Place): QuarantineEvent | undefined {
    const seen = this.#spot(p, spot => {
      // Checked every time: a memory-mapped file can change without a new timestamp.
      if (spot.depth < p.names.length || !isAllowed(p.rule, spot, p.path)) return this.#take(p, spot)
      if (p.rule.kind === 'git-config') remember(p, spot)
      return 'fine'
    })
    if (seen !== undefined) return seen === 'fine' ? undefined : seen
    const root = this.#roots.get(p.root)
    if (root === undefined || !putLinkBack(p, root) || p.told) return undefined
    p.told = true
    return { kind: 'back', path: p.path }
  }

  #take(p: Place, spot: Spot): QuarantineEvent | undefined {
    const path = `${p.root}/${p.names.slice(0, spot.depth).join('/')}`
    const { dir } = this.#options
    try {
      mkdirSync(dir, { recursive: true, mode: 0o700 })
      this.#count ||= lastNumber(dir)
      const label = `${String(++this.#count).padStart(4, '0')}-${spot.name}`
      const taken = moveOut(spot, dir, label)
      if (taken === undefined) return undefined
      if (taken.stuck !== undefined) {
        const { aside, why } = taken.stuck
        return { kind: 'stuck', path, why, mayBeUsers: p.mayBeUsers, aside: `${dirname(path)}/${aside}` }
      }
      const restored = spot.depth === p.names.length && putBack(p, spot)
      return {
        kind: 'moved',
        path,
        to: `${dir}/${label}`,
        what: taken.what,
        restored,
        mayBeUsers: p.mayBeUsers,
      }
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

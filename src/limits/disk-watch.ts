/**
 * Bounds how much a sandbox may leave on the host's disk, without a walk at the start. Cheap signs a few times a second (the
 * file system fills, the sandbox's processes write) say that the bound may be reached; only then the trees are measured.
 */
import { statfsSync } from 'node:fs'
import { listTree } from '../base/kernel/processes.ts'
import { dirname } from '../base/posix-path.ts'
import { deviceOf, type Growth, LEAST_PER_FILE, measureGrowth, measureUnlinked } from './growth.ts'
import type { LimitHit } from './limit-hit.ts'
import { writtenBy } from './process-usage.ts'

export interface DiskBudget {
  readonly limit: 'disk' | 'output'
  readonly bound: number
  readonly trees: readonly string[]
}

/** Clocks of files run a tick behind. */
const CLOCK_SLACK_MS = 20
/** Signs of less than this part of the bound are not worth another walk. */
const GRAIN = 0.04
const LONGEST_REST_MS = 3000
const CALM_MS = 250
const CLOSE_MS = 40
const FLOOR_BYTES = 256 * 2 ** 20
const FLOOR_PART = 0.01

class FileSystem {
  readonly #at: string
  used = 0
  /** Every rise added up: what others free meanwhile hides nothing. */
  risen = 0
  #low = 0
  free = Number.POSITIVE_INFINITY
  floor = 0

  constructor(at: string) {
    this.#at = at
    this.look()
    this.risen = 0
    this.#low = this.used
  }

  /** By how much it is fuller than at its emptiest since the start. */
  get rise(): number {
    return this.used - this.#low
  }

  /** Returns the difference to the last look. */
  look(): number {
    try {
      const { blocks, bfree, bavail, bsize, files, ffree } = statfsSync(this.#at)
      const used = (blocks - bfree) * bsize + (files - ffree) * LEAST_PER_FILE
      const change = used - this.used
      this.used = used
      this.risen += Math.max(0, change)
      this.#low = Math.min(this.#low, used)
      this.free = bavail * bsize
      this.floor = Math.min(FLOOR_BYTES, blocks * bsize * FLOOR_PART)
      return change
    } catch {
      return 0
    }
  }
}

interface Watched extends DiskBudget {
  readonly on: ReadonlySet<number>
  known: number
  sign: number
  restUntil: number
  walking: boolean
}

export class DiskWatch {
  readonly #since = Date.now() - CLOCK_SLACK_MS
  readonly #systems = new Map<number, FileSystem>()
  readonly #watched: readonly Watched[]
  readonly #tell: (hit: LimitHit) => void
  #written = 0
  #looked = performance.now()
  /** Growth that went together with writes of the sandbox, wherever it may be. */
  #together = 0
  #stopped = false

  /** Opened before the sandbox starts: what is there now is not its doing. */
  constructor(budgets: readonly DiskBudget[], tell: (hit: LimitHit) => void) {
    this.#tell = tell
    this.#watched = budgets.map(budget => ({
      ...budget,
      on: new Set(budget.trees.map(tree => this.#systemOf(tree))),
      known: 0,
      sign: 0,
      restUntil: 0,
      walking: false,
    }))
  }

  stop(): void {
    this.#stopped = true
  }

  /** Resolves when what had to be measured has been, with how long to wait for the next look. */
  async look(init: number): Promise<number> {
    const members = listTree(init)
    const written = members.reduce((sum, { pid }) => sum + writtenBy(pid), 0)
    const wrote = Math.max(0, written - this.#written)
    this.#written = Math.max(this.#written, written)
    const change = [...this.#systems.values()].reduce((sum, system) => sum + system.look(), 0)
    this.#together = Math.max(0, this.#together + (change > 0 ? Math.min(change, wrote) : change))
    const now = performance.now()
    const speed = Math.max(change, wrote) / (now - this.#looked)
    this.#looked = now
    const due = this.#watched.filter(
      budget => !budget.walking && now >= budget.restUntil && this.#missing(budget) <= 0,
    )
    await Promise.all(due.map(budget => this.#measure(budget, init)))
    // Half of the way to the nearest bound at this speed, so that a fast writer does not get far beyond it.
    const nearest = Math.min(...this.#watched.map(budget => Math.max(0, this.#missing(budget))))
    return speed > 0 ? Math.min(CALM_MS, Math.max(CLOSE_MS, nearest / speed / 2)) : CALM_MS
  }

  /** As far as it was measured: anew only when the last time did not take long. */
  async grown(init: number): Promise<number> {
    const budget = this.#watched.find(({ limit }) => limit === 'disk')
    if (budget === undefined) return 0
    if (!budget.walking && performance.now() >= budget.restUntil) await this.#measure(budget, init)
    return budget.known
  }

  #sign(budget: Watched): number {
    return Math.max(this.#over(budget, 'risen'), this.#written)
  }

  /** How much more must seem to be written before the trees are worth a measurement. */
  #missing(budget: Watched): number {
    const wanted = Math.max(budget.bound - budget.known, budget.bound * GRAIN)
    return wanted - (this.#sign(budget) - budget.sign)
  }

  async #measure(budget: Watched, init: number): Promise<void> {
    const began = performance.now()
    budget.walking = true
    budget.sign = this.#sign(budget)
    const { used, note } = await this.#growth(budget, init)
    budget.known = used
    budget.walking = false
    const took = performance.now() - began
    budget.restUntil = performance.now() + Math.min(LONGEST_REST_MS, took * 8)
    if (used < budget.bound || this.#stopped) return
    this.#stopped = true
    const { limit, bound } = budget
    this.#tell({ limit, what: 'killed', used, bound, amount: 1, ...(note !== undefined && { note }) })
  }

  async #growth(budget: Watched, init: number): Promise<{ used: number; note?: string }> {
    const { bound, trees } = budget
    const held = measureUnlinked(listTree(init), budget.on, this.#since)
    // A file without a name belongs to no tree: it counts as disk alone.
    const nameless = budget.limit === 'disk' ? held.made : 0
    if (nameless >= bound) return { used: nameless, note: 'in files that were deleted and are still open' }
    const walk = (everything: boolean): Promise<Growth> =>
      measureGrowth({ trees, since: this.#since, enough: bound - nameless, everything })
    let growth = await walk(false)
    const rise = (): number => this.#over(budget, 'rise')
    if (growth.made + nameless < bound && rise() >= bound) growth = await walk(true)
    const made = growth.made + nameless
    if (made >= bound) return { used: made }
    // Older files that changed hold at most what the file system gained beyond the new ones.
    const grown = made + Math.min(growth.changed, Math.max(0, rise() - made))
    if (grown >= bound) return { used: grown, note: 'also in files that were there before' }
    if (growth.blind && rise() >= bound)
      return {
        used: rise(),
        note: 'in places that pen cannot look into: the whole growth of the file system counts',
      }
    if (budget.limit === 'output') return { used: grown }
    if (this.#together >= 2 * bound)
      return { used: this.#together, note: 'in files that no name or descriptor leads to' }
    if (rise() >= bound && [...budget.on].some(device => this.#isNearlyFull(device)))
      return { used: rise(), note: 'the file system is nearly full' }
    return { used: grown }
  }

  #isNearlyFull(device: number): boolean {
    const system = this.#systems.get(device)
    return system !== undefined && system.free < system.floor
  }

  #over(budget: Watched, key: 'risen' | 'rise'): number {
    return [...budget.on].reduce((sum, device) => sum + (this.#systems.get(device)?.[key] ?? 0), 0)
  }

  /** A tree that does not exist yet will be made on the file system of the nearest directory above. */
  #systemOf(tree: string): number {
    let at = tree
    let device = deviceOf(at)
    while (device === undefined && at !== '/') {
      at = dirname(at)
      device = deviceOf(at)
    }
    const key = device ?? -1
    if (!this.#systems.has(key)) this.#systems.set(key, new FileSystem(at))
    return key
  }
}

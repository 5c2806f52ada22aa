/**
 * Limits how much a sandbox adds to the host's disk, without a walk at the start. A few times a second it checks cheap signs:
 * the file system fills up, or the sandbox's processes write. It measures the trees only if the limit may be reached.
 */
import { statfsSync } from 'node:fs'
import { listTrees } from '../base/kernel/processes.ts'
import { dirname } from '../base/posix-path.ts'
import { deviceOf, type Growth, LEAST_PER_FILE, measureGrowth, measureUnlinked } from './growth.ts'
import type { LimitHit } from './limit-hit.ts'
import { writtenBy } from './process-usage.ts'

export interface DiskBudget {
  readonly limit: 'disk' | 'output'
  readonly bound: number
  readonly trees: readonly string[]
}

/** File timestamps lag behind by up to one kernel tick. */
const CLOCK_SLACK_MS = 20
/** Signs below this fraction of the limit do not justify another walk. */
const GRAIN = 0.04
const LONGEST_REST_MS = 3000
const CALM_MS = 250
const CLOSE_MS = 40
const FLOOR_BYTES = 256 * 2 ** 20
const FLOOR_PART = 0.01

class FileSystem {
  readonly #at: string
  used = 0
  /** The sum of all increases. Space that others free does not reduce it. */
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

  /** How much fuller the file system is than at its emptiest since the start. */
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
  readonly #report: (hit: LimitHit) => void
  #written = 0
  #looked = performance.now()
  /** Growth that coincided with writes of the sandbox, anywhere. */
  #together = 0
  #stopped = false

  /** Created before the sandbox starts, so that existing files do not count. */
  constructor(budgets: readonly DiskBudget[], report: (hit: LimitHit) => void) {
    this.#report = report
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

  /** Measures if needed. Resolves to the delay until the next look. */
  async look(...inits: readonly number[]): Promise<number> {
    const members = listTrees(inits)
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
    await Promise.all(due.map(budget => this.#measure(budget, inits)))
    // Look again after half the time to the nearest limit at this speed, so that a fast writer cannot exceed it by much.
    const nearest = Math.min(...this.#watched.map(budget => Math.max(0, this.#missing(budget))))
    return speed > 0 ? Math.min(CALM_MS, Math.max(CLOSE_MS, nearest / speed / 2)) : CALM_MS
  }

  /** The last measured growth. Measures again only if the last measurement was fast. */
  async grown(...inits: readonly number[]): Promise<number> {
    const budget = this.#watched.find(({ limit }) => limit === 'disk')
    if (budget === undefined) return 0
    if (!budget.walking && performance.now() >= budget.restUntil) await this.#measure(budget, inits)
    return budget.known
  }

  #sign(budget: Watched): number {
    return Math.max(this.#over(budget, 'risen'), this.#written)
  }

  /** How many more written bytes justify a measurement. */
  #missing(budget: Watched): number {
    const wanted = Math.max(budget.bound - budget.known, budget.bound * GRAIN)
    return wanted - (this.#sign(budget) - budget.sign)
  }

  async #measure(budget: Watched, inits: readonly number[]): Promise<void> {
    const began = performance.now()
    budget.walking = true
    budget.sign = this.#sign(budget)
    const { used, note } = await this.#growth(budget, inits)
    budget.known = used
    budget.walking = false
    const took = performance.now() - began
    budget.restUntil = performance.now() + Math.min(LONGEST_REST_MS, took * 8)
    if (used < budget.bound || this.#stopped) return
    this.#stopped = true
    const { limit, bound } = budget
    this.#report({ limit, what: 'killed', used, bound, amount: 1, ...(note !== undefined && { note }) })
  }

  async #growth(budget: Watched, inits: readonly number[]): Promise<{ used: number; note?: string }> {
    const { bound, trees } = budget
    const held = measureUnlinked(listTrees(inits), budget.on, this.#since)
    // An unlinked file belongs to no tree, so it counts only as disk.
    const nameless = budget.limit === 'disk' ? held.made : 0
    if (nameless >= bound) return { used: nameless, note: 'in files that were deleted and are still open' }
    const walk = (everything: boolean): Promise<Growth> =>
      measureGrowth({ trees, since: this.#since, enough: bound - nameless, everything })
    let growth = await walk(false)
    const rise = (): number => this.#over(budget, 'rise')
    if (growth.made + nameless < bound && rise() >= bound) growth = await walk(true)
    const made = growth.made + nameless
    if (made >= bound) return { used: made }
    // Older files that changed contain at most what the file system gained beyond the new files.
    const grown = made + Math.min(growth.changed, Math.max(0, rise() - made))
    if (grown >= bound) return { used: grown, note: 'including files that existed before' }
    if (growth.blind && rise() >= bound)
      return {
        used: rise(),
        note: 'in directories that pen cannot read: the whole growth of the file system counts',
      }
    if (budget.limit === 'output') return { used: grown }
    if (this.#together >= 2 * bound)
      return { used: this.#together, note: 'in files without a name or a descriptor' }
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

  /** For an absent tree: the file system of its nearest existing ancestor. */
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

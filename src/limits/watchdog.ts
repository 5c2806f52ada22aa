/**
 * Holds what no cgroup holds: looks at the sandbox's processes a few times a second. Weaker than the kernel: between two
 * looks a fast program can take more than its bound. Never by RLIMIT_AS, which forbids address space, not memory.
 */

import { listTree, type Member } from '../base/kernel/processes.ts'
import { processorsOf, setProcessors } from '../base/kernel/processors.ts'
import type { Limits } from '../policy/policy.ts'
import type { CgroupLimit } from './cgroup.ts'
import type { LimitHit } from './limit-hit.ts'
import { cpuMsOf, memoryOf, shareOf } from './process-usage.ts'
import { MemoryFiles, scratchBytes, scratchMounts } from './scratch-memory.ts'
import { Throttle } from './throttle.ts'

const CALM_MS = 200
const CLOSE_MS = 50
/** Descriptors and mounts are looked at every so many looks only. */
const RARELY = 5
const LONGEST_PAUSE_MS = 300

export type NextLook = number | 'at once'

export interface WatchdogOptions {
  readonly init: number
  /** A path to its root directory. */
  readonly root: string
  readonly limits: Limits
  readonly watch: ReadonlySet<CgroupLimit>
  readonly cores: number
  /** Processes inside that are pen's own; the init counts as such anyway. */
  readonly own: ReadonlySet<number>
  /** `killed` means that the caller is to end the sandbox now. */
  readonly tell: (hit: LimitHit) => void
}

export class Watchdog {
  readonly #options: WatchdogOptions
  readonly #throttle: Throttle
  readonly #told = new Map<string, LimitHit>()
  #looks = 0
  #mounts: readonly string[] = []
  readonly #files = new MemoryFiles()
  #memoryFiles = 0
  /** The sum at which the slow, exact look found that all was well. */
  #cleared = 0
  #cpu = { at: performance.now(), used: 0, debt: 0, paused: 0 }
  /** Threads of the init, which is pen's own program in a sandbox that stays. */
  #ofInit = 1
  #usage = { cpuMs: 0, memoryBytes: 0, pids: 0 }

  constructor(options: WatchdogOptions) {
    this.#options = options
    this.#throttle = new Throttle(options.init)
    if (options.watch.has('cpus')) narrow(options.init, options.limits.cpus)
  }

  get usage(): { readonly cpuMs: number; readonly memoryBytes: number; readonly pids: number } {
    return this.#usage
  }

  hits(): LimitHit[] {
    const { cpus } = this.#options.limits
    const slowed: LimitHit[] =
      this.#cpu.paused > 0
        ? [
            {
              limit: 'cpus',
              what: 'throttled',
              used: cpus,
              bound: cpus,
              amount: Math.round(this.#cpu.paused),
            },
          ]
        : []
    return [...this.#told.values(), ...slowed]
  }

  /** One look. Returns how long to wait for the next; `at once` where every moment of waiting is time that the sandbox takes. */
  look(): NextLook {
    if (this.#throttle.isPaused) this.#throttle.resume()
    const members = listTree(this.#options.init)
    const { watch } = this.#options
    const tasks = this.#sum(members)
    const isCrowded = watch.has('pids') && this.#lookAtPids(tasks)
    const near = (watch.has('memory') && this.#lookAtMemory(members)) || isCrowded
    this.#looks++
    const busy = watch.has('cpus') && this.#options.limits.cpus < this.#options.cores
    const pause = busy ? this.#lookAtCpu(members) : 0
    if (pause === 'not yet') return 'at once'
    return pause > 0 ? pause : near || busy ? CLOSE_MS : CALM_MS
  }

  /** Wakes what is paused: nothing may be left standing when somebody else ends the sandbox. */
  stop(): void {
    this.#throttle.resume()
  }

  #sum(members: readonly Member[]): number {
    const each = members.map(({ pid }) => memoryOf(pid))
    if (this.#looks % RARELY === 0) {
      this.#mounts = scratchMounts(this.#options.init)
      this.#memoryFiles = this.#files.look(members)
    }
    const unseen = scratchBytes(this.#options.root, this.#mounts) + this.#memoryFiles
    const memoryBytes = each.reduce((sum, m) => sum + m.anonymous + m.shared, unseen)
    const { own } = this.#options
    const pids = each.reduce((sum, m, i) => (own.has(members[i]?.pid ?? 0) ? sum : sum + m.threads), 0)
    this.#ofInit = each[members.findIndex(({ pid }) => pid === this.#options.init)]?.threads ?? 1
    this.#usage = { ...this.#usage, memoryBytes, pids }
    return pids
  }

  /**
   * The kernel refuses by RLIMIT_NPROC and counts no refusal, so a full sandbox is the only sign. A peak lies between two looks: what
   * was nearly full when it was looked at is taken for full. The kernel counts every thread of the init; the bound leaves room for one.
   * Returns whether the bound is near.
   */
  #lookAtPids(tasks: number): boolean {
    const bound = this.#options.limits.pids
    if (tasks > bound * 1.25 + 8) this.#tell({ limit: 'pids', what: 'killed', used: tasks, bound, amount: 1 })
    else if (tasks + this.#ofInit - 1 >= bound - Math.max(1, bound / 10))
      this.#tell({
        limit: 'pids',
        what: 'refused',
        used: tasks,
        bound,
        amount: (this.#told.get('pids')?.amount ?? 0) + 1,
        note: `${tasks} were seen`,
      })
    return tasks > bound / 2
  }

  #lookAtMemory(members: readonly Member[]): boolean {
    const bound = this.#options.limits.memory
    const upper = this.#usage.memoryBytes
    if (upper > bound && upper > this.#cleared * 1.05) {
      const exact = this.#exact(members)
      if (exact > bound) this.#tell({ limit: 'memory', what: 'killed', used: exact, bound, amount: 1 })
      // The sum counts shared pages twice: this far it is known to be harmless, for a second.
      else this.#cleared = upper
    } else if (this.#looks % (RARELY * 4) === 0) this.#cleared = 0
    return upper > bound / 2
  }

  #exact(members: readonly Member[]): number {
    let anonymous = 0
    let shared = 0
    for (const { pid } of members) {
      const share = shareOf(pid) ?? memoryOf(pid)
      anonymous += share.anonymous
      shared += share.shared
    }
    this.#memoryFiles = this.#files.look(members)
    const unseen = scratchBytes(this.#options.root, scratchMounts(this.#options.init)) + this.#memoryFiles
    // A mapped file on a tmpfs is in both.
    return anonymous + Math.max(shared, unseen)
  }

  /** Time that was used beyond the share is paid back by standing still. */
  #lookAtCpu(members: readonly Member[]): number | 'not yet' {
    const { cpus } = this.#options.limits
    const now = performance.now()
    const used = members.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0)
    // Time of children that nobody waited for is lost to their parents; the sum must not run backwards.
    const more = Math.max(0, used - this.#cpu.used)
    const debt = Math.max(-cpus * CLOSE_MS, this.#cpu.debt + more - (now - this.#cpu.at) * cpus)
    this.#cpu = { ...this.#cpu, at: now, used, debt }
    this.#usage = { ...this.#usage, cpuMs: this.#usage.cpuMs + more }
    if (debt <= 0) return 0
    const pause = Math.min(LONGEST_PAUSE_MS, Math.max(10, debt / cpus))
    if (!this.#throttle.pause()) return 'not yet'
    this.#cpu.paused += pause
    return pause
  }

  #tell(hit: LimitHit): void {
    const before = this.#told.get(hit.limit)
    if (before?.what === 'killed' || (before?.what === hit.what && before.amount >= hit.amount)) return
    this.#told.set(hit.limit, hit)
    this.#options.tell(hit)
  }
}

/** So that the sandbox cannot use more CPUs at once and its programs count the right number. It could undo this; the looks remain. */
function narrow(init: number, cpus: number): void {
  const there = processorsOf(init)
  const want = Math.ceil(cpus)
  if (want >= there.length) return
  // Anywhere: two sandboxes should not share one half of the machine.
  const from = Math.floor(Math.random() * there.length)
  const chosen = Array.from({ length: want }, (_, i) => there[(from + i) % there.length] as number)
  // The init alone when its command still waits; all there is when it has started.
  for (const { pid } of listTree(init)) setProcessors(pid, chosen)
}

/** Watches all limits of a sandbox, behind one handle: opened before its command starts, read after its end. */

import { listTree, listTrees } from '../base/kernel/processes.ts'
import type { Limits } from '../policy/policy.ts'
import { type Bounds, CORES } from './bounds.ts'
import { CapacityWatch } from './capacity-watch.ts'
import { CGROUP_LIMITS, type Cgroup, type CgroupCounters } from './cgroup.ts'
import { type DiskBudget, DiskWatch } from './disk-watch.ts'
import { cgroupOf, sandboxCgroup } from './engine-cgroup.ts'
import { Freezer } from './freezer.ts'
import { type InitHandle, initHandle } from './init-handle.ts'
import type { LimitHit } from './limit-hit.ts'
import { cgroupParents, type LimitSupport } from './probe.ts'
import { cpuMsOf } from './process-usage.ts'
import { sweepAndRemember } from './stale.ts'
import { Throttle } from './throttle.ts'
import { type NextLook, Watchdog } from './watchdog.ts'

const FIRST_LOOK_MS = 100
const COUNTERS_MS = 200
const AFTER_ERROR_MS = 250
/** Looking may take at most this fraction of one core, even if the sandbox makes it slow. */
const SHARE = 0.05
/** The delay after an unfinished look. Only a few of those follow each other. */
const AT_ONCE_MS = 5

/** The delay between looks while no command runs. */
const QUIET_MS = 1000

interface Pending {
  readonly fire: () => void
  timer: NodeJS.Timeout | undefined
}

interface LimitOptions {
  /** Writable host directories whose growth counts towards `limits.disk`. */
  readonly growing: readonly string[]
  /** The directory for `limits.output`. It need not exist. */
  readonly output: string | undefined
  /** A file in pen's state that lists the parents of its cgroups. Undefined: a sandbox beside this one sweeps them. */
  readonly placesFile: string | undefined
}

interface Usage {
  readonly cpuMs: number
  readonly memoryBytes: number
  readonly pids: number
}

export class LimitHandle {
  readonly bounds: Bounds
  readonly #limits: Limits
  readonly #support: LimitSupport
  #cgroup: Cgroup | undefined
  #counters: CgroupCounters | undefined
  readonly #disk: DiskWatch
  readonly #room: CapacityWatch
  #watchdog: Watchdog | undefined
  #init: { readonly pid: number; readonly all: readonly number[]; readonly reach: InitHandle } | undefined
  readonly #pending = new Set<Pending>()
  /** The init of a container and the exec daemon. Alone they use nothing up. */
  #own: ReadonlySet<number> | undefined
  #makeFreezer: (() => Freezer) | undefined
  #freezer: Freezer | undefined
  #copies = 0
  #woken = performance.now()
  readonly #listeners: ((hit: LimitHit) => void)[] = []
  readonly #hits = new Map<string, LimitHit>()
  /** Runs later, while the sandbox runs, so that the start does not wait for it. */
  #sweep: (() => void) | undefined
  #finished: boolean = false

  constructor(bounds: Bounds, options: LimitOptions) {
    const { limits, support } = bounds
    this.bounds = bounds
    this.#limits = limits
    this.#support = support
    this.#cgroup = bounds.cgroup
    const { placesFile } = options
    if (
      placesFile !== undefined &&
      support.mechanism.how !== 'watchdog' &&
      support.mechanism.how !== 'engine'
    )
      this.#sweep = () => sweepAndRemember(placesFile, cgroupParents(support))
    this.#disk = new DiskWatch(budgets(limits, options), hit => this.#hit(hit))
    this.#room = new CapacityWatch(limits, hit => this.#hit(hit))
  }

  /**
   * Starts watching before the command starts, so that limits apply from its first moment. `files` is the init of a file
   * server, which writes to disk and has the scratch in place of the sandbox.
   */
  attach(init: number, reach: InitHandle = initHandle(init), files?: number): void {
    const inits = files === undefined ? [init] : [init, files]
    const scratch =
      files === undefined ? { init, root: reach.root } : { init: files, root: `/proc/${files}/root` }
    this.#init = { pid: init, all: inits, reach }
    const throttle = new Throttle(...inits)
    this.#makeFreezer = () => new Freezer(sandboxCgroup(this.bounds, init), throttle)
    setImmediate(() => this.#sweepOnce())
    const own = this.#ownProcesses(init)
    if (this.#support.mechanism.how === 'engine') this.#own = own
    // A scope of systemd's has one program and what it starts.
    const unheld =
      this.#support.mechanism.how === 'systemd-scope' && files !== undefined ? [files] : undefined
    const watch = new Set(
      CGROUP_LIMITS.filter(limit => unheld !== undefined || !this.#support.held.has(limit)),
    )
    // A limit of at least all cores needs no watchdog.
    if (this.#limits.cpus >= CORES) watch.delete('cpus')
    if (watch.size > 0) {
      const report = (hit: LimitHit): void => this.#hit(hit)
      const watchdog = new Watchdog({
        inits: unheld ?? inits,
        scratch,
        limits: this.#limits,
        watch,
        own,
        throttle: unheld === undefined ? throttle : new Throttle(...unheld),
        report,
      })
      this.#watchdog = watchdog
      this.#repeat(() => watchdog.look())
    }
    if (this.#support.held.size > 0) this.#repeat(() => this.#lookAtCounters())
    this.#repeat(() => this.#disk.look(...inits))
    this.#repeat(() => this.#room.look(init, scratch))
  }

  /** In a container only the init and the exec daemon run at this point. */
  #ownProcesses(init: number): ReadonlySet<number> {
    const members = this.#support.mechanism.how === 'engine' ? listTree(init).map(({ pid }) => pid) : []
    return new Set([init, ...members])
  }

  /** A command is about to start: look often again. */
  wake(): void {
    this.#woken = performance.now()
    for (const pending of this.#pending) this.#set(pending, FIRST_LOOK_MS)
  }

  /** Reads the counters now, because an engine removes its cgroups together with the container. */
  look(): void {
    if (this.#support.held.size > 0 && !this.#finished) this.#lookAtCounters()
  }

  /** Pauses the sandbox as far as that is possible. `act` runs in any case. */
  async whilePaused<T>(act: () => Promise<T>): Promise<T> {
    this.#freezer ??= this.#makeFreezer?.()
    return await (this.#freezer === undefined ? act() : this.#freezer.whilePaused(act))
  }

  /** The same for a copy that the user asked for. It may take a while, in which nothing inside answers. */
  async whileCopied(act: () => Promise<void>): Promise<void> {
    this.#copies++
    try {
      await this.whilePaused(act)
    } finally {
      this.#copies--
    }
  }

  get isCopied(): boolean {
    return this.#copies > 0
  }

  /** Called for each limit that is reached, and again when more is refused. A `killed` sandbox has already been killed. */
  onHit(listener: (hit: LimitHit) => void): void {
    this.#listeners.push(listener)
  }

  /** Reports a full process table that only the sandbox's own kernel can see. */
  reportFullPids(): void {
    const { pids } = this.#limits
    this.#hit({ limit: 'pids', what: 'refused', used: pids, bound: pids, amount: 1 })
  }

  usage(): Usage {
    const cgroup = this.#cgroup?.usage()
    const members = listTrees(this.#init?.all ?? [])
    return {
      cpuMs: cgroup?.cpuMs ?? members.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0),
      memoryBytes: cgroup?.memoryBytes ?? this.#watchdog?.memoryBytes ?? 0,
      pids: cgroup?.pids ?? members.length,
    }
  }

  /** The growth of the trees that count towards `limits.disk`. */
  async grown(): Promise<number> {
    return this.#init === undefined ? 0 : await this.#disk.grown(...this.#init.all)
  }

  /** After the end: reads every counter a last time and stops watching. */
  async finish(): Promise<LimitHit[]> {
    this.#finished = true
    this.#sweepOnce()
    for (const { timer } of this.#pending) clearTimeout(timer)
    this.#watchdog?.stop()
    this.#disk.stop()
    this.#room.finish()
    this.#readCounters(true)
    this.#noteThrottled(this.#watchdog?.pausedMs ?? 0)
    this.#cgroup?.close()
    return [...this.#hits.values()]
  }

  #sweepOnce(): void {
    this.#sweep?.()
    this.#sweep = undefined
  }

  #repeat(look: () => NextLook | Promise<number>): void {
    const again = (ms: number): void => {
      if (!this.#finished) this.#set(pending, this.#isQuiet() ? Math.max(ms, QUIET_MS) : ms)
    }
    const fire = (): void => {
      this.#pending.delete(pending)
      const began = performance.now()
      const next = look()
      const least = (performance.now() - began) / SHARE
      if (next === 'at once') again(AT_ONCE_MS)
      else if (typeof next === 'number') again(Math.max(next, least))
      else
        void next.then(
          wait => again(Math.max(wait, least)),
          () => again(AFTER_ERROR_MS),
        )
    }
    const pending: Pending = { fire, timer: undefined }
    this.#set(pending, FIRST_LOOK_MS)
  }

  #set(pending: Pending, ms: number): void {
    clearTimeout(pending.timer)
    pending.timer = setTimeout(pending.fire, ms)
    pending.timer.unref()
    this.#pending.add(pending)
  }

  #isQuiet(): boolean {
    const own = this.#own
    if (performance.now() - this.#woken < QUIET_MS) return false
    return (
      own !== undefined &&
      this.#init !== undefined &&
      listTree(this.#init.pid).every(({ pid }) => own.has(pid))
    )
  }

  #lookAtCounters(): number {
    // One that the engine or systemd made exists once the sandbox runs.
    if (this.#init !== undefined) this.#cgroup ??= cgroupOf(this.#init.pid)
    this.#readCounters(false)
    return COUNTERS_MS
  }

  /** Counters only grow and vanish with the cgroup, so the highest value counts. */
  #counted(now: CgroupCounters | undefined): CgroupCounters | undefined {
    const { oomKills = 0, refusedForks = 0, throttledMs = 0 } = this.#counters ?? {}
    if (now !== undefined)
      this.#counters = {
        oomKills: Math.max(oomKills, now.oomKills),
        refusedForks: Math.max(refusedForks, now.refusedForks),
        throttledMs: Math.max(throttledMs, now.throttledMs),
      }
    return this.#counters
  }

  #readCounters(last: boolean): void {
    const counters = this.#counted(this.#cgroup?.counters())
    if (counters === undefined) return
    const { memory, pids } = this.#limits
    const { oomKills, refusedForks, throttledMs } = counters
    // The kernel may have killed one process of many. Kill the rest too, so that no run continues half-dead.
    if (oomKills > 0)
      this.#hit({ limit: 'memory', what: 'killed', used: memory, bound: memory, amount: oomKills })
    if (refusedForks > 0)
      this.#hit({ limit: 'pids', what: 'refused', used: pids, bound: pids, amount: refusedForks })
    // A little throttling is normal for a CPU share, so it is only noted at the end.
    if (last) this.#noteThrottled(throttledMs)
  }

  #noteThrottled(ms: number): void {
    const { cpus } = this.#limits
    if (ms > 0)
      this.#note({ limit: 'cpus', what: 'throttled', used: cpus, bound: cpus, amount: Math.round(ms) })
  }

  #note(hit: LimitHit): void {
    this.#hits.set(hit.limit, hit)
  }

  #hit(hit: LimitHit): void {
    const before = this.#hits.get(hit.limit)
    if (before?.what === 'killed' && hit.what !== 'killed') return
    this.#note(hit)
    if (hit.what === 'killed') this.#init?.reach.kill()
    if ((before?.what === hit.what && before.amount >= hit.amount) || this.#finished) return
    for (const listener of this.#listeners) listener(hit)
  }
}

const budgets = (limits: Limits, { growing, output }: LimitOptions): DiskBudget[] => [
  ...(growing.length > 0 ? [{ limit: 'disk' as const, bound: limits.disk, trees: growing }] : []),
  ...(output === undefined ? [] : [{ limit: 'output' as const, bound: limits.output, trees: [output] }]),
]

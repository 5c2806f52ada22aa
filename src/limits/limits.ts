/** Everything that is watched of a sandbox's use of the machine, behind one handle: opened before its command starts, read after the end. */

import { listTree } from '../base/kernel/processes.ts'
import type { Limits } from '../policy/policy.ts'
import { type Bounds, CORES } from './bounds.ts'
import { CapacityWatch } from './capacity-watch.ts'
import type { Cgroup, CgroupCounters, CgroupLimit } from './cgroup.ts'
import { type DiskBudget, DiskWatch } from './disk-watch.ts'
import { cgroupOf } from './engine-cgroup.ts'
import { type InitHandle, initHandle } from './init-handle.ts'
import type { LimitHit } from './limit-hit.ts'
import { ALL, type LimitSupport } from './probe.ts'
import { cpuMsOf } from './process-usage.ts'
import { sweepAndRemember } from './stale.ts'
import { scopeOf } from './systemd-scope.ts'
import { type NextLook, Watchdog } from './watchdog.ts'

const FIRST_LOOK_MS = 100
const COUNTERS_MS = 200
const AFTER_ERROR_MS = 250
/** Looking may take this part of one core, whatever the sandbox does to make it slow. */
const SHARE = 0.05
/** For a look that had not come to its end: there are a few of those in a row at most. */
const AT_ONCE_MS = 5

/** How often it is looked where nobody runs anything. */
const QUIET_MS = 1000

interface Pending {
  readonly fire: () => void
  timer: NodeJS.Timeout | undefined
}

export interface LimitOptions {
  /** Writable trees of the host whose growth counts against `limits.disk`. */
  readonly growing: readonly string[]
  /** The directory that `limits.output` bounds; it need not exist. */
  readonly output: string | undefined
  /** Where pen remembers in which cgroups it stood: a file in its own state. */
  readonly placesFile: string
}

export interface Usage {
  readonly cpuMs: number
  readonly memoryBytes: number
  readonly pids: number
}

export class LimitHandle {
  readonly bounds: Bounds
  readonly #limits: Limits
  readonly #name: string
  readonly #found: LimitSupport
  #cgroup: Cgroup | undefined
  #counters: CgroupCounters | undefined
  readonly #disk: DiskWatch
  readonly #room: CapacityWatch
  #watchdog: Watchdog | undefined
  #init: { readonly pid: number; readonly reach: InitHandle } | undefined
  readonly #pending = new Set<Pending>()
  /** The init of a container and the exec daemon: alone, they use nothing up. */
  #own: ReadonlySet<number> | undefined
  #woken = performance.now()
  readonly #listeners: ((hit: LimitHit) => void)[] = []
  readonly #hits = new Map<string, LimitHit>()
  /** Left for when the sandbox runs: nobody waits for it. */
  #sweep: (() => void) | undefined
  #finished: boolean = false

  constructor(bounds: Bounds, options: LimitOptions) {
    const { limits, found } = bounds
    this.bounds = bounds
    this.#limits = limits
    this.#found = found
    this.#name = bounds.name
    this.#cgroup = bounds.cgroup
    if (found.means.how !== 'watchdog' && found.means.how !== 'engine')
      this.#sweep = () => sweepAndRemember(options.placesFile, placesOf(found))
    this.#disk = new DiskWatch(budgets(limits, options), hit => this.#hit(hit))
    this.#room = new CapacityWatch(limits, hit => this.#hit(hit))
  }

  /** Starts watching: before the command starts, so that what holds from the start does. */
  attach(init: number, reach: InitHandle = initHandle(init)): void {
    this.#init = { pid: init, reach }
    setImmediate(() => this.#sweepOnce())
    const own = this.#ownProcesses(init)
    if (this.#found.means.how === 'engine') this.#own = own
    const unheld = ALL.filter(limit => !this.#found.held.has(limit))
    const watch = new Set<CgroupLimit>(unheld)
    if (this.#limits.cpus >= CORES) watch.delete('cpus')
    if (watch.size > 0) {
      const cores = CORES
      const tell = (hit: LimitHit): void => this.#hit(hit)
      this.#watchdog = new Watchdog({ init, root: reach.root, limits: this.#limits, watch, cores, own, tell })
      const watchdog = this.#watchdog
      this.#repeat(() => watchdog.look())
    }
    if (this.#found.held.size > 0) this.#repeat(() => this.#lookAtCounters())
    this.#repeat(() => this.#disk.look(init))
    this.#repeat(() => this.#room.look(init, reach.root))
  }

  /** Nothing of the sandbox's has begun: whoever is there in a container is its init and the exec daemon. */
  #ownProcesses(init: number): ReadonlySet<number> {
    const members = this.#found.means.how === 'engine' ? listTree(init).map(({ pid }) => pid) : []
    return new Set([init, ...members])
  }

  /** A command is about to begin: what was looked at seldom is looked at often again. */
  wake(): void {
    this.#woken = performance.now()
    for (const pending of this.#pending) this.#set(pending, FIRST_LOOK_MS)
  }

  /** At once, and not only a few times a second: an engine takes its cgroups away together with the container. */
  look(): void {
    if (this.#found.held.size > 0 && !this.#finished) this.#lookAtCounters()
  }

  /** Called for each limit that is reached while the sandbox runs, and again when more is refused. One that is `killed` has been ended already. */
  onHit(listener: (hit: LimitHit) => void): void {
    this.#listeners.push(listener)
  }

  /** As the sandbox's own kernel says, where the host's cannot count its processes. */
  reportFullPids(): void {
    const { pids } = this.#limits
    this.#hit({ limit: 'pids', what: 'refused', used: pids, bound: pids, amount: 1 })
  }

  usage(): Usage {
    const cgroup = this.#cgroup?.usage()
    const watched = this.#watchdog?.usage
    const members = this.#init === undefined ? [] : listTree(this.#init.pid)
    return {
      cpuMs: cgroup?.cpuMs ?? members.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0),
      memoryBytes: cgroup?.memoryBytes ?? watched?.memoryBytes ?? 0,
      pids: cgroup?.pids ?? members.length,
    }
  }

  /** What was added to the trees that `limits.disk` bounds. */
  async grown(): Promise<number> {
    return this.#init === undefined ? 0 : await this.#disk.grown(this.#init.pid)
  }

  /** After the end: the last word of every counter. Nothing is watched any more. */
  async finish(): Promise<LimitHit[]> {
    this.#finished = true
    this.#sweepOnce()
    for (const { timer } of this.#pending) clearTimeout(timer)
    this.#watchdog?.stop()
    this.#disk.stop()
    this.#room.finish()
    this.#readCounters(true)
    for (const hit of this.#watchdog?.hits() ?? []) this.#note(hit)
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
    if (this.#cgroup === undefined && this.#init !== undefined) this.#cgroup = this.#find(this.#init.pid)
    this.#readCounters(false)
    return COUNTERS_MS
  }

  /** They only grow, and end with the cgroup: what was read last stays true. */
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

  /** Made by somebody else, and there when the sandbox is. */
  #find(init: number): Cgroup | undefined {
    const { means, held, own } = this.#found
    return means.how === 'engine' ? cgroupOf(init, held) : scopeOf(init, this.#name, own)
  }

  #readCounters(last: boolean): void {
    const counters = this.#counted(this.#cgroup?.counters())
    if (counters === undefined) return
    const { memory, pids, cpus } = this.#limits
    const { oomKills, refusedForks, throttledMs } = counters
    // The kernel may have ended one process of many: the rest goes too, so that a run is whole or over.
    if (oomKills > 0)
      this.#hit({ limit: 'memory', what: 'killed', used: memory, bound: memory, amount: oomKills })
    if (refusedForks > 0)
      this.#hit({ limit: 'pids', what: 'refused', used: pids, bound: pids, amount: refusedForks })
    // Being slowed down a little is how a share of the CPU works, no event to interrupt anybody for.
    if (last && throttledMs > 0)
      this.#note({
        limit: 'cpus',
        what: 'throttled',
        used: cpus,
        bound: cpus,
        amount: Math.round(throttledMs),
      })
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

function placesOf({ means }: LimitSupport): Iterable<string> {
  if (means.how === 'cgroup-v1') return means.parents.values()
  return means.how === 'cgroup-v2' ? [means.parent.dir] : []
}

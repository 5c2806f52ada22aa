/**
 * Enforces limits without a cgroup: looks at the sandbox's processes a few times a second. It is weaker than the kernel, because
 * a fast program can exceed a limit between two looks. RLIMIT_AS is no substitute: it limits address space, not memory.
 */
import { listTree, listTrees, type Member } from '../base/kernel/processes.ts'
import { processorsOf, setProcessors } from '../base/kernel/processors.ts'
import type { Limits } from '../policy/policy.ts'
import type { CgroupLimit } from './cgroup.ts'
import type { LimitHit } from './limit-hit.ts'
import { cpuMsOf, memoryOf, shareOf } from './process-usage.ts'
import { MemoryFiles, type ScratchPlace, scratchBytes, scratchMounts } from './scratch-memory.ts'
import type { Throttle } from './throttle.ts'

const CALM_MS = 200
const CLOSE_MS = 50
/** Check descriptors and mounts only every this many looks. */
const SLOW_CHECK_INTERVAL = 5
const LONGEST_PAUSE_MS = 300

export type NextLook = number | 'at once'

interface WatchdogOptions {
  /** The init of the sandbox, and in a virtual machine that of the file server. */
  readonly inits: readonly number[]
  readonly scratch: ScratchPlace
  readonly limits: Limits
  readonly watch: ReadonlySet<CgroupLimit>
  /** pen's own processes inside. The init always counts as one. */
  readonly own: ReadonlySet<number>
  readonly throttle: Throttle
  /** After `killed` the caller must end the sandbox at once. */
  readonly report: (hit: LimitHit) => void
}

export class Watchdog {
  readonly #options: WatchdogOptions
  readonly #throttle: Throttle
  #looks = 0
  #mounts: readonly string[] = []
  readonly #files = new MemoryFiles()
  #memoryFiles = 0
  /** The sum at which the slow, exact check found no excess. */
  #cleared = 0
  #cpu = { at: performance.now(), used: 0, debt: 0, paused: 0 }
  /** Threads of the init, which is pen's own program in a sandbox that stays. */
  #ofInit = 1
  #memoryBytes = 0
  /** How many looks found the sandbox full. */
  #fullLooks = 0

  constructor(options: WatchdogOptions) {
    this.#options = options
    this.#throttle = options.throttle
    if (options.watch.has('cpus')) for (const init of options.inits) narrow(init, options.limits.cpus)
  }

  /** The sum at the last look. */
  get memoryBytes(): number {
    return this.#memoryBytes
  }

  /** How long the sandbox was paused because of `limits.cpus`. */
  get pausedMs(): number {
    return this.#cpu.paused
  }

  /** Looks once. Returns the delay until the next look, or `at once` if a delay would give the sandbox extra time. */
  look(): NextLook {
    if (this.#throttle.isPaused) this.#throttle.resume()
    const members = listTrees(this.#options.inits)
    const { watch } = this.#options
    const tasks = this.#sum(members)
    const isCrowded = watch.has('pids') && this.#lookAtPids(tasks)
    const near = (watch.has('memory') && this.#lookAtMemory(members)) || isCrowded
    this.#looks++
    const busy = watch.has('cpus')
    const pause = busy ? this.#lookAtCpu(members) : 0
    if (pause === 'not yet') return 'at once'
    return pause > 0 ? pause : near || busy ? CLOSE_MS : CALM_MS
  }

  /** Resumes paused processes, so that none stays stopped when the sandbox is ended. */
  stop(): void {
    this.#throttle.resume()
  }

  #sum(members: readonly Member[]): number {
    const each = members.map(({ pid }) => memoryOf(pid))
    if (this.#looks % SLOW_CHECK_INTERVAL === 0) {
      this.#mounts = scratchMounts(this.#options.scratch.init)
      this.#memoryFiles = this.#files.look(members)
    }
    const unreported = scratchBytes(this.#options.scratch.root, this.#mounts) + this.#memoryFiles
    this.#memoryBytes = each.reduce((sum, m) => sum + m.anonymous + m.shared, unreported)
    const { own } = this.#options
    const pids = each.reduce((sum, m, i) => (own.has(members[i]?.pid ?? 0) ? sum : sum + m.threads), 0)
    this.#ofInit = each[members.findIndex(({ pid }) => pid === this.#options.inits[0])]?.threads ?? 1
    return pids
  }

  /**
   * The kernel refuses forks by RLIMIT_NPROC without counting them, so a full sandbox is the only sign. A peak may fall between two
   * looks, so nearly full counts as full. The kernel counts every thread of the init, and the limit has room for one.
   * Returns whether the limit is near.
   */
  #lookAtPids(tasks: number): boolean {
    const bound = this.#options.limits.pids
    if (tasks > bound * 1.25 + 8)
      this.#options.report({ limit: 'pids', what: 'killed', used: tasks, bound, amount: 1 })
    else if (tasks + this.#ofInit - 1 >= bound - Math.max(1, bound / 10))
      this.#options.report({
        limit: 'pids',
        what: 'refused',
        used: tasks,
        bound,
        amount: ++this.#fullLooks,
        note: `${tasks} were seen`,
      })
    return tasks > bound / 2
  }

  #lookAtMemory(members: readonly Member[]): boolean {
    const bound = this.#options.limits.memory
    const upper = this.#memoryBytes
    if (upper > bound && upper > this.#cleared * 1.05) {
      const exact = this.#exact(members)
      if (exact > bound)
        this.#options.report({ limit: 'memory', what: 'killed', used: exact, bound, amount: 1 })
      // The sum counts shared pages twice. Up to this sum, no excess is known, for one second.
      else this.#cleared = upper
    } else if (this.#looks % (SLOW_CHECK_INTERVAL * 4) === 0) this.#cleared = 0
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
    const { init, root } = this.#options.scratch
    const unreported = scratchBytes(root, scratchMounts(init)) + this.#memoryFiles
    // A mapped file on a tmpfs is in both sums.
    return anonymous + Math.max(shared, unreported)
  }

  /** Pauses the sandbox for the time that it used beyond its share. */
  #lookAtCpu(members: readonly Member[]): number | 'not yet' {
    const { cpus } = this.#options.limits
    const now = performance.now()
    const used = members.reduce((sum, { pid }) => sum + cpuMsOf(pid), 0)
    // The CPU time of unreaped children is lost, and the sum must not decrease.
    const more = Math.max(0, used - this.#cpu.used)
    const debt = Math.max(-cpus * CLOSE_MS, this.#cpu.debt + more - (now - this.#cpu.at) * cpus)
    this.#cpu = { ...this.#cpu, at: now, used, debt }
    if (debt <= 0) return 0
    const pause = Math.min(LONGEST_PAUSE_MS, Math.max(10, debt / cpus))
    if (!this.#throttle.pause()) return 'not yet'
    this.#cpu.paused += pause
    return pause
  }
}

/** Restricts the sandbox to fewer CPUs, so that its programs see the right number. A sandbox could undo it; the looks continue. */
function narrow(init: number, cpus: number): void {
  const there = processorsOf(init)
  const want = Math.ceil(cpus)
  if (want >= there.length) return
  // Start at a random CPU, so that two sandboxes do not share the same half of the machine.
  const from = Math.floor(Math.random() * there.length)
  const chosen = Array.from({ length: want }, (_, i) => there[(from + i) % there.length] as number)
  // Before the command starts this is the init alone, afterwards every process.
  for (const { pid } of listTree(init)) setProcessors(pid, chosen)
}

/** What both cgroup versions provide: descriptors to join, counters to read, and a directory to remove. */
import { closeSync, openSync, readSync, rmdirSync, writeFileSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import type { Limits } from '../policy/policy.ts'

/** Limits that a cgroup can enforce. */
export type CgroupLimit = 'memory' | 'pids' | 'cpus'

export const CGROUP_LIMITS: readonly CgroupLimit[] = ['memory', 'pids', 'cpus']

/** The kernel's name of the controller for each limit. */
export const CONTROLLER = { memory: 'memory', pids: 'pids', cpus: 'cpu' } as const

/** The kernel's counts of refusals and kills. */
export interface CgroupCounters {
  readonly oomKills: number
  readonly refusedForks: number
  readonly throttledMs: number
}

interface CgroupUsage {
  readonly cpuMs: number | undefined
  readonly memoryBytes: number | undefined
  readonly pids: number | undefined
}

export interface Cgroup {
  readonly holds: ReadonlySet<CgroupLimit>
  /** Open for writing. A process joins by writing `0` into each. */
  readonly joinFds: readonly number[]
  counters(): CgroupCounters
  usage(): CgroupUsage
  close(): void
  readonly dirs: readonly string[]
}

/** The guard's child, bubblewrap's monitor and the init are in the cgroup too, and do not count as the user's processes. */
export const OWN_PROCESSES = 3

/** The CFS period: short enough for a responsive terminal, long enough to be cheap. */
export const CPU_PERIOD_US = 100_000

export const cpuQuota = (limits: Limits): number => Math.max(1000, Math.round(limits.cpus * CPU_PERIOD_US))

export function setLimit(file: string, value: number | string): void {
  try {
    writeFileSync(file, String(value))
  } catch (error) {
    throw new PenError('LIMIT', {
      what: `a limit could not be set (${errnoOf(error) ?? 'unknown error'})`,
      at: file,
      hint: 'lower the limit: it may exceed the limits that pen itself runs under',
      cause: error,
    })
  }
}

/** A counter file, opened on first use and kept open, so that another read costs one system call. */
export class CounterFile {
  readonly #path: string | undefined
  #fd: number | undefined
  #buffer: Buffer | undefined

  constructor(path: string | undefined) {
    this.#path = path
  }

  /** The number after a key, or the first number if there are no keys. */
  read(key?: string): number | undefined {
    if (this.#path === undefined) return undefined
    try {
      this.#fd ??= openSync(this.#path, 'r')
      this.#buffer ??= Buffer.alloc(1024)
      const text = this.#buffer.toString('latin1', 0, readSync(this.#fd, this.#buffer, 0, 1024, 0))
      if (key === undefined) return Number.parseInt(text, 10)
      const line = text.split('\n').find(words => words.startsWith(`${key} `))
      return line === undefined ? undefined : Number(line.slice(key.length + 1))
    } catch {
      return undefined
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }
}

const PATIENCE_MS = 500

/** A cgroup stays busy for a moment after its last process was reaped. One that stays busy longer is an error. */
export async function removeCgroups(dirs: readonly string[]): Promise<void> {
  let left = dirs
  const deadline = performance.now() + PATIENCE_MS
  for (let wait = 1; ; wait = Math.min(50, wait * 2)) {
    left = left.filter(dir => !removeCgroup(dir))
    if (left.length === 0) return
    if (performance.now() > deadline)
      throw new PenError('LIMIT', {
        what: 'it still has processes or child cgroups',
        at: left.join(', '),
        hint: 'pen gc',
      })
    await new Promise(resolve => setTimeout(resolve, wait))
  }
}

export function removeCgroup(dir: string): boolean {
  try {
    rmdirSync(dir)
    return true
  } catch (error) {
    return errnoOf(error) === 'ENOENT'
  }
}

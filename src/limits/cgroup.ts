/** What both versions of cgroups give: descriptors to join, counters to read, and a directory to take away again. */
import { closeSync, openSync, readSync, rmdirSync, writeFileSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import type { Limits } from '../policy/policy.ts'

/** Limits that a cgroup can hold. */
export type CgroupLimit = 'memory' | 'pids' | 'cpus'

/** Refusals and kills so far, as the kernel counts them. */
export interface CgroupCounters {
  readonly oomKills: number
  readonly refusedForks: number
  readonly throttledMs: number
}

export interface CgroupUsage {
  readonly cpuMs: number | undefined
  readonly memoryBytes: number | undefined
  readonly pids: number | undefined
}

export interface Cgroup {
  readonly holds: ReadonlySet<CgroupLimit>
  /** Open for writing; a process that writes `0` into each is in. */
  readonly joinFds: readonly number[]
  counters(): CgroupCounters
  usage(): CgroupUsage
  close(): void
  readonly dirs: readonly string[]
}

/** The guard's twin, bubblewrap's monitor and the init are in the cgroup too; the user asked for processes of their own. */
export const OWN_PROCESSES = 3

/** The CFS period: short enough that a throttled terminal still feels alive, long enough to be cheap. */
export const CPU_PERIOD_US = 100_000

export const cpuQuota = (limits: Limits): number => Math.max(1000, Math.round(limits.cpus * CPU_PERIOD_US))

export function setLimit(file: string, value: number | string): void {
  try {
    writeFileSync(file, String(value))
  } catch (error) {
    throw new PenError('LIMIT', {
      what: `a limit could not be set (${errnoOf(error) ?? 'unknown error'})`,
      at: file,
      hint: 'check the limits in the configuration against those that pen itself runs under',
      cause: error,
    })
  }
}

/** A counter file, opened when it is first asked and then kept: reading it again costs one system call. */
export class CounterFile {
  readonly #path: string | undefined
  #fd: number | undefined
  #buffer: Buffer | undefined

  constructor(path: string | undefined) {
    this.#path = path
  }

  /** The number after a key, or the first number when there are no keys. */
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

/** What both cgroup versions provide: descriptors to join, counters to read, and a directory to remove. */
import { accessSync, closeSync, constants, openSync, readSync, rmdirSync, writeFileSync } from 'node:fs'
import { errnoOf, errnoText, PenError } from '../base/error.ts'
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

/** A cgroup that pen made. */
export interface OpenCgroup {
  /** Open for writing. A process joins by writing `0` into each. */
  readonly joinFds: readonly number[]
  readonly dirs: readonly string[]
}

/** A cgroup that pen, systemd or an engine made. */
export class Cgroup implements OpenCgroup {
  readonly joinFds: readonly number[]
  readonly dirs: readonly string[]
  readonly #files: Readonly<Record<keyof CgroupCounters | keyof CgroupUsage, CounterFile>>

  constructor(
    files: Readonly<Record<keyof CgroupCounters | keyof CgroupUsage, CounterFile>>,
    { joinFds, dirs }: OpenCgroup = { joinFds: [], dirs: [] },
  ) {
    this.#files = files
    this.joinFds = joinFds
    this.dirs = dirs
  }

  counters(): CgroupCounters {
    const { oomKills, refusedForks, throttledMs } = this.#files
    return {
      oomKills: oomKills.read() ?? 0,
      refusedForks: refusedForks.read() ?? 0,
      throttledMs: throttledMs.read() ?? 0,
    }
  }

  usage(): CgroupUsage {
    const { cpuMs, memoryBytes, pids } = this.#files
    return { cpuMs: cpuMs.read(), memoryBytes: memoryBytes.read(), pids: pids.read() }
  }

  close(): void {
    for (const file of Object.values(this.#files)) file.close()
    for (const fd of this.joinFds) closeSync(fd)
  }
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
      what: `a limit could not be set (${errnoText(error)})`,
      at: file,
      hint: 'lower the limit: it may exceed the limits that pen itself runs under',
      cause: error,
    })
  }
}

/** For a setting that some kernels lack. */
export function tryToSet(file: string, value: number): boolean {
  try {
    writeFileSync(file, String(value), { flag: 'r+' })
    return true
  } catch {
    return false
  }
}

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

interface CounterOptions {
  /** The word before the number. Without it the file is one number. */
  readonly key?: string
  /** How many of the kernel's units are one of pen's. */
  readonly unit?: number
}

/** One counter in a file, opened on first use and kept open, so that another read costs one system call. */
export class CounterFile {
  readonly #path: string | undefined
  readonly #key: string | undefined
  readonly #unit: number
  #fd: number | undefined
  #buffer: Buffer | undefined

  constructor(path: string | undefined, { key, unit = 1 }: CounterOptions = {}) {
    this.#path = path
    this.#key = key
    this.#unit = unit
  }

  read(): number | undefined {
    if (this.#path === undefined) return undefined
    try {
      this.#fd ??= openSync(this.#path, 'r')
      this.#buffer ??= Buffer.alloc(1024)
      const text = this.#buffer.toString('latin1', 0, readSync(this.#fd, this.#buffer, 0, 1024, 0))
      const key = this.#key
      const line = key === undefined ? text : text.split('\n').find(words => words.startsWith(`${key} `))
      return line === undefined ? undefined : Number.parseInt(line.slice(key?.length ?? 0), 10) / this.#unit
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

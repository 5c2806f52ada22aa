/**
 * Bounds that the kernel holds and tells nobody of: the open files of a process and the size of scratch. They are looked
 * at from outside: a program that meets one for less than a look and goes on is refused all the same, and not told of.
 */
import { closeSync, constants, openSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { listTree } from '../base/kernel/processes.ts'
import type { Limits } from '../policy/policy.ts'
import type { LimitHit } from './limit-hit.ts'
import { scratchMounts } from './scratch-memory.ts'

const LOOK_MS = 400

interface Scratch {
  readonly at: string
  /** Held, so that what was left can still be asked for when the sandbox is gone. */
  readonly fd: number
}

export class CapacityWatch {
  readonly #limits: Limits
  readonly #tell: (hit: LimitHit) => void
  #scratch: Scratch[] | undefined

  constructor(limits: Limits, tell: (hit: LimitHit) => void) {
    this.#limits = limits
    this.#tell = tell
  }

  look(init: number, root: string): number {
    this.#scratch ??= openScratch(init, root)
    this.#lookAtScratch()
    const bound = this.#limits.files
    for (const { pid } of listTree(init)) {
      const used = openFilesOf(pid, bound)
      if (used < bound) continue
      this.#tell({ limit: 'files', what: 'refused', used, bound, amount: 1 })
      break
    }
    return LOOK_MS
  }

  /** After the end: most programs go when their disk is full, before anybody looks. */
  finish(): void {
    this.#lookAtScratch()
    for (const { fd } of this.#scratch ?? []) closeSync(fd)
    this.#scratch = []
  }

  #lookAtScratch(): void {
    const { disk, memory } = this.#limits
    for (const { at, fd } of this.#scratch ?? []) {
      const size = sizeIfFull(`/proc/self/fd/${fd}`)
      if (size === undefined) continue
      // Scratch may take half of the memory, and no more than the disk: the one that made it so small is named.
      const limit = memory / 2 < disk ? 'memory' : 'disk'
      this.#tell({ limit, what: 'refused', used: size, bound: size, amount: 1, note: `${at} is full` })
      return
    }
  }
}

/** The mounts are pen's own and sealed: none of these names can be turned into a link from inside. */
function openScratch(init: number, root: string): Scratch[] {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
  return scratchMounts(init).flatMap(at => {
    try {
      return [{ at, fd: openSync(`${root}${at}`, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) }]
    } catch {
      return []
    }
  })
}

function sizeIfFull(path: string): number | undefined {
  try {
    const { blocks, bfree, bsize, files, ffree } = statfsSync(path)
    return (blocks > 0 && bfree === 0) || (files > 0 && ffree === 0) ? blocks * bsize : undefined
  } catch {
    return undefined
  }
}

/** Whom the bound does not concern, as gVisor's own process: it holds what many programs inside have open. */
const mayOpenMore = (pid: number, bound: number): boolean =>
  Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))?.[1]) > bound

/** Exact only near the bound: the size of the table, which is cheap to read, is never smaller than what is in it. */
function openFilesOf(pid: number, bound: number): number {
  try {
    const table = Number(/^FDSize:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
    if (table < bound || mayOpenMore(pid, bound)) return 0
    const dir = `/proc/${pid}/fd`
    // The size of this directory is the number of its entries, since Linux 6.2.
    return statSync(dir).size || readdirSync(dir).length
  } catch {
    return 0
  }
}

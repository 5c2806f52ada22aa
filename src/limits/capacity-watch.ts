/**
 * Limits that the kernel enforces without an event: open files per process, and the size of scratch. They are polled from
 * outside, so a short hit is refused but not reported.
 */
import { closeSync, constants, openSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { descriptorsOf, listTree } from '../base/kernel/processes.ts'
import type { Limits } from '../policy/policy.ts'
import type { LimitHit } from './limit-hit.ts'
import { type ScratchPlace, scratchMounts } from './scratch-memory.ts'

const LOOK_MS = 400

interface Scratch {
  readonly at: string
  /** Kept open, so that the free space can be read after the sandbox's end. */
  readonly fd: number
}

export class CapacityWatch {
  readonly #limits: Limits
  readonly #report: (hit: LimitHit) => void
  #scratch: Scratch[] | undefined

  constructor(limits: Limits, report: (hit: LimitHit) => void) {
    this.#limits = limits
    this.#report = report
  }

  look(init: number, scratch: ScratchPlace): number {
    this.#scratch ??= openScratch(scratch)
    this.#lookAtScratch()
    const bound = this.#limits.files
    for (const { pid } of listTree(init)) {
      const used = openFilesOf(pid, bound)
      if (used < bound) continue
      this.#report({ limit: 'files', what: 'refused', used, bound, amount: 1 })
      break
    }
    return LOOK_MS
  }

  /** After the end: most programs exit when their disk is full, before the next look. */
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
      // Scratch is limited to half of the memory and to the disk limit. Name the smaller one.
      const limit = memory / 2 < disk ? 'memory' : 'disk'
      this.#report({ limit, what: 'refused', used: size, bound: size, amount: 1, note: `${at} is full` })
      return
    }
  }
}

/** pen made and sealed these mounts, so nothing inside can turn their paths into links. */
function openScratch({ init, root }: ScratchPlace): Scratch[] {
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

/** Skips a process with a higher limit, such as gVisor's: it holds the open files of many programs inside. */
const mayOpenMore = (pid: number, bound: number): boolean =>
  Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))?.[1]) > bound

/** Exact only near the limit. The table size is cheap to read and never smaller than the number of open files. */
function openFilesOf(pid: number, bound: number): number {
  try {
    const table = Number(/^FDSize:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
    if (table < bound || mayOpenMore(pid, bound)) return 0
    // Since Linux 6.2 the size of this directory is its number of entries.
    return statSync(`/proc/${pid}/fd`).size || descriptorsOf(pid).length
  } catch {
    return 0
  }
}

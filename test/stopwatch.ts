/**
 * Time for claims about time, on a busy machine. pen keeps its times when a CPU is free. When every program
 * queues for a CPU, so does pen, and so does the program that measures it. The kernel counts how long any
 * process waited for a CPU or a disk, and ten times that is subtracted here: as many processes may be ahead of
 * us. On an idle machine that is zero, and a claim is as strict as it reads.
 */
import { readFileSync } from 'node:fs'

export const QUEUE = 10

export class Stopwatch {
  readonly #began = performance.now()
  readonly #waited = waitedMs()

  /** Since it was made. */
  get ms(): number {
    return Math.max(0, performance.now() - this.#began - this.lost)
  }

  /** The time to subtract: more than the elapsed time, on a machine that is always busy. */
  get lost(): number {
    return QUEUE * (waitedMs() - this.#waited)
  }
}

/** Since boot. Zero where the kernel does not count it. */
function waitedMs(): number {
  const microseconds = ['cpu', 'io'].map(what => Number(/total=(\d+)/.exec(pressure(what))?.[1] ?? 0))
  return microseconds.reduce((sum, one) => sum + one) / 1000
}

function pressure(what: string): string {
  try {
    return readFileSync(`/proc/pressure/${what}`, 'latin1')
  } catch {
    return ''
  }
}

/**
 * Time for claims about time, on a machine that others keep busy. What pen promises within a second it does with a processor at hand; where
 * every program has to queue for one, so has pen, and so has the program that it is measured by. The kernel counts how long there was
 * anybody who waited for a processor or a disk, and ten times that is not counted here: as many may stand before us.
 * On an idle machine that is nothing, and a claim is as strict as it reads.
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

  /** What is not counted: more than the clock says, on a machine that is busy all the time. */
  get lost(): number {
    return QUEUE * (waitedMs() - this.#waited)
  }
}

/** Since the machine was started; nothing where the kernel does not count it. */
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

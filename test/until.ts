/** Waits for a condition, for as long as a busy machine needs (see stopwatch.ts). */
import { readFileSync } from 'node:fs'
import { Stopwatch } from './stopwatch.ts'

type Condition = () => boolean | Promise<boolean>

/** Polls, and returns how many milliseconds it took. Throws when that is more than `ms`. */
export async function until(holds: Condition, ms = 10_000, note: () => string = () => ''): Promise<number> {
  const watch = new Stopwatch()
  for (; !(await holds()); await Bun.sleep(5))
    if (watch.ms > ms) throw new Error(`it did not happen: ${holds} ${note()}`)
  return watch.ms
}

/** Polls. False when the condition did not hold in time. */
export async function within(ms: number, holds: Condition): Promise<boolean> {
  for (const watch = new Stopwatch(); !(await holds()); await Bun.sleep(5)) if (watch.ms > ms) return false
  return true
}

/** Whether a process exists. A zombie does not count. */
export function lives(pid: number | string): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${String(pid).trim()}/status`, 'latin1'))
  } catch {
    return false
  }
}

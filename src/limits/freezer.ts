/**
 * Pauses a sandbox while pen catches up with it: by the cgroup freezer (version 2) where the sandbox has its own cgroup, else by
 * SIGSTOP, which only slows it down. A process that the freezer of version 1 holds cannot be killed, so pen never uses that one.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Throttle } from './throttle.ts'

const POLL_MS = 2
/** A fork bomb is frozen in a few milliseconds, or by no number of tries. */
const PATIENCE_MS = 500

export class Freezer {
  readonly #cgroup: string | undefined
  readonly #throttle: Throttle
  /** Several may look at once: the last one resumes the sandbox. */
  #looks = 0

  /** `cgroup` holds this sandbox and nothing of pen's. */
  constructor(cgroup: string | undefined, throttle: Throttle) {
    this.#cgroup = cgroup !== undefined && existsSync(`${cgroup}/cgroup.freeze`) ? cgroup : undefined
    this.#throttle = throttle
  }

  /** `act` runs in any case: it must be bounded, and must not rely on the pause. */
  async whilePaused<T>(act: () => Promise<T>): Promise<T> {
    this.#looks++
    try {
      await this.#pause()
      return await act()
    } finally {
      if (--this.#looks === 0) this.#resume()
    }
  }

  async #pause(): Promise<void> {
    const cgroup = this.#cgroup
    if (cgroup !== undefined) writeFileSync(`${cgroup}/cgroup.freeze`, '1')
    const isPaused = (): boolean =>
      cgroup === undefined
        ? this.#throttle.pause('look')
        : /^frozen 1$/m.test(readFileSync(`${cgroup}/cgroup.events`, 'latin1'))
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await Bun.sleep(POLL_MS))
      if (isPaused()) return
    // On a busy machine a parent may not stop before its children in time. A sandbox that runs on could outrun the look.
    if (cgroup === undefined) this.#throttle.pause('look', 'at once')
  }

  #resume(): void {
    if (this.#cgroup === undefined) this.#throttle.resume('look')
    else if (existsSync(this.#cgroup)) writeFileSync(`${this.#cgroup}/cgroup.freeze`, '0')
  }
}

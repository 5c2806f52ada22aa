/**
 * Processes quarantined entries in the background, one after the other, in slices: each is disarmed and kept, or removed. An
 * entry that is not done when the run must end stays where it is, and is reported.
 */
import { errnoOf, PenError } from '../base/error.ts'
import type { Rest } from './move-out.ts'
import { inSlices } from './slices.ts'

interface Entry {
  /** Its path in the quarantine. */
  readonly to: string
  /** Where it is while it is copied to another file system. */
  readonly aside: string
  readonly rest: Rest
}

/** `full`: no space was left for a copy. */
export interface Settled extends Omit<Entry, 'rest'> {
  readonly how: 'kept' | 'partly' | 'removed' | 'left' | 'full'
}

export class Settling {
  readonly #settled: (settled: Settled) => void
  readonly #queue: Entry[] = []
  #deadline = Number.POSITIVE_INFINITY
  #work: Promise<void> | undefined

  constructor(settled: (settled: Settled) => void) {
    this.#settled = settled
  }

  add(entry: Entry): void {
    this.#queue.push(entry)
    if (this.#work !== undefined) return
    this.#work = this.#settleAll()
    // `finish` reports the error.
    this.#work.catch(() => undefined)
  }

  /** Resolves when every entry is done, or reported as left. */
  async finish(withinMs: number): Promise<void> {
    this.#deadline = performance.now() + withinMs
    await this.#work
  }

  async #settleAll(): Promise<void> {
    // Let the current sweep finish first.
    await Promise.resolve()
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const { rest, ...entry } = next
      const how = await inSlices(rest, () => this.#deadline).catch((error: unknown) => {
        if (errnoOf(error) === undefined && !(error instanceof PenError)) throw error
        return undefined
      })
      this.#settled({ ...entry, how: how ?? 'left' })
    }
    this.#work = undefined
  }
}

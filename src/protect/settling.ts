/**
 * What was taken away is settled behind the sandbox's back, one thing after the other, in slices: it is disarmed and kept, or removed.
 * What is not settled when the run must end stays where it is, and is told.
 */
import { errnoOf, PenError } from '../base/error.ts'
import type { Rest } from './move-out.ts'
import { inSlices } from './slices.ts'

export interface Settled {
  /** Where it is kept, or was meant to be. */
  readonly to: string
  readonly how: 'kept' | 'partly' | 'removed' | 'left'
}

export class Settling {
  readonly #settled: (settled: Settled) => void
  readonly #queue: { readonly to: string; readonly rest: Rest }[] = []
  #deadline = Number.POSITIVE_INFINITY
  #work: Promise<void> | undefined

  constructor(settled: (settled: Settled) => void) {
    this.#settled = settled
  }

  add(to: string, rest: Rest): void {
    this.#queue.push({ to, rest })
    if (this.#work !== undefined) return
    this.#work = this.#settleAll()
    // Heard of in `finish`.
    this.#work.catch(() => undefined)
  }

  /** Resolves when all is settled or told as left. */
  async finish(withinMs: number): Promise<void> {
    this.#deadline = performance.now() + withinMs
    await this.#work
  }

  async #settleAll(): Promise<void> {
    // The sweep that adds to it goes on first.
    await Promise.resolve()
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const { to, rest } = next
      const how = await inSlices(rest, () => this.#deadline).catch((error: unknown) => {
        if (errnoOf(error) === undefined && !(error instanceof PenError)) throw error
        return undefined
      })
      this.#settled({ to, how: how ?? 'left' })
    }
    this.#work = undefined
  }
}

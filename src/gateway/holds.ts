/**
 * Connections that wait for a person. Nothing of them has left the host. How many there may be is bounded: a sandbox
 * could open them only to wear somebody down.
 */
import type { GatewayLimits } from './limits.ts'
import type { ByteStream } from './stream/byte-stream.ts'

/** `changed`: the policy may have an answer now. `gone`: the program hung up. */
export type HoldEnd = 'changed' | 'late' | 'gone'

interface Waiting {
  readonly client: ByteStream
  readonly target: string
  isWoken: boolean
}

export class Holds {
  readonly #limits: Pick<GatewayLimits, 'maxHolding' | 'maxHoldingAlike'>
  readonly #waiting = new Set<Waiting>()
  readonly #asked = new Set<{ readonly target: string }>()

  constructor(limits: Pick<GatewayLimits, 'maxHolding' | 'maxHoldingAlike'>) {
    this.#limits = limits
  }

  get count(): number {
    return this.#waiting.size
  }

  hasRoom(target: string): boolean {
    const all = [...this.#waiting, ...this.#asked]
    const alike = all.filter(other => other.target === target)
    return all.length < this.#limits.maxHolding && alike.length < this.#limits.maxHoldingAlike
  }

  /** A question that no connection waits for takes the room of one, until the function that is returned is called. */
  occupy(target: string): () => void {
    const asked = { target }
    this.#asked.add(asked)
    return () => void this.#asked.delete(asked)
  }

  /** `until` is on the clock of `performance.now()`. A goodbye of the client counts as hanging up. */
  async wait(client: ByteStream, target: string, until: number): Promise<HoldEnd> {
    const waiting: Waiting = { client, target, isWoken: false }
    this.#waiting.add(waiting)
    try {
      for (;;) {
        if (client.ended || client.closed) return 'gone'
        if (waiting.isWoken) return 'changed'
        const left = until - performance.now()
        if (left <= 0) return 'late'
        await client.more(left)
      }
    } finally {
      this.#waiting.delete(waiting)
    }
  }

  /** In the order in which they came. */
  wake(): void {
    for (const waiting of this.#waiting) {
      waiting.isWoken = true
      waiting.client.stopWaiting()
    }
  }
}

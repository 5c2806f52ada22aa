/**
 * Connections that wait for the user's answer. None of their bytes has left the host. Their number is limited, because
 * a sandbox could open many only to wear the user down.
 */
import type { GatewayLimits } from './limits.ts'
import type { ByteStream } from './stream/byte-stream.ts'

/** `changed`: the policy changed and may decide now. `closed`: the program closed the connection. */
export type HoldEnd = 'changed' | 'timeout' | 'closed'

interface HeldConnection {
  readonly client: ByteStream
  readonly target: string
  isWoken: boolean
}

export class Holds {
  readonly #limits: Pick<GatewayLimits, 'maxHolding' | 'maxHoldingAlike'>
  readonly #waiting = new Set<HeldConnection>()
  readonly #questions = new Set<{ readonly target: string }>()

  constructor(limits: Pick<GatewayLimits, 'maxHolding' | 'maxHoldingAlike'>) {
    this.#limits = limits
  }

  get count(): number {
    return this.#waiting.size
  }

  hasRoom(target: string): boolean {
    const all = [...this.#waiting, ...this.#questions]
    const alike = all.filter(other => other.target === target)
    return all.length < this.#limits.maxHolding && alike.length < this.#limits.maxHoldingAlike
  }

  /** A question without a connection takes the same room as one, until the returned function is called. */
  occupy(target: string): () => void {
    const question = { target }
    this.#questions.add(question)
    return () => void this.#questions.delete(question)
  }

  /** `until` is a time of `performance.now()`. A half-closed client counts as closed. */
  async wait(client: ByteStream, target: string, until: number): Promise<HoldEnd> {
    const waiting: HeldConnection = { client, target, isWoken: false }
    this.#waiting.add(waiting)
    try {
      for (;;) {
        if (client.ended || client.closed) return 'closed'
        if (waiting.isWoken) return 'changed'
        const left = until - performance.now()
        if (left <= 0) return 'timeout'
        await client.more(left)
      }
    } finally {
      this.#waiting.delete(waiting)
    }
  }

  /** Wakes them in the order of their arrival. */
  wake(): void {
    for (const waiting of this.#waiting) {
      waiting.isWoken = true
      waiting.client.stopWaiting()
    }
  }
}

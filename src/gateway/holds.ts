/**
 * Connections that wait for the user's answer. None of their bytes has left the host. Their number is limited, because
 * a sandbox could open many only to wear the user down.
 */
import type { GatewayLimits } from './limits.ts'

/** `changed`: the policy changed and may decide now. `closed`: the program closed the connection. */
export type HoldEnd = 'changed' | 'timeout' | 'closed'

/** The program that waits: a connection, or a stream of HTTP/2. */
export interface Waiter {
  readonly ended: boolean
  readonly closed: boolean
  /** Ends at the latest after this time, at `stopWaiting`, or when the program goes away. */
  more(ms: number): Promise<boolean>
  stopWaiting(): void
}

interface Waiting {
  readonly client: Waiter
  isWoken: boolean
}

export class Holds {
  readonly #limits: Pick<GatewayLimits, 'maxHolding' | 'maxHoldingAlike'>
  readonly #entered = new Set<{ readonly target: string }>()
  /** The held connections of these, in the order of their arrival. */
  readonly #waiting = new Set<Waiting>()

  constructor(limits: Pick<GatewayLimits, 'maxHolding' | 'maxHoldingAlike'>) {
    this.#limits = limits
  }

  get count(): number {
    return this.#waiting.size
  }

  hasRoom(target: string): boolean {
    const alike = [...this.#entered].filter(other => other.target === target)
    return this.#entered.size < this.#limits.maxHolding && alike.length < this.#limits.maxHoldingAlike
  }

  /** Takes the room of one connection, until the returned function is called. A question without a connection does so too. */
  enter(target: string): () => void {
    const entry = { target }
    this.#entered.add(entry)
    return () => void this.#entered.delete(entry)
  }

  /** `until` is a time of `performance.now()`. A half-closed client counts as closed. */
  async wait(client: Waiter, target: string, until: number): Promise<HoldEnd> {
    const waiting: Waiting = { client, isWoken: false }
    const leave = this.enter(target)
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
      leave()
      this.#waiting.delete(waiting)
    }
  }

  wake(): void {
    for (const waiting of this.#waiting) {
      waiting.isWoken = true
      waiting.client.stopWaiting()
    }
  }
}

/** A rate limit: a burst, then a number per second. */
export class TokenBucket {
  readonly #burst: number
  readonly #perSecond: number
  #tokens: number
  #since = performance.now()

  constructor(burst: number, perSecond: number) {
    this.#burst = burst
    this.#perSecond = perSecond
    this.#tokens = burst
  }

  /** False when the limit is reached. */
  take(now = performance.now()): boolean {
    this.#refill(now)
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }

  /** Waits when the limit is reached, so that a flood is slow and loses nothing. Callers wait in order. */
  async wait(): Promise<void> {
    this.#refill(performance.now())
    this.#tokens--
    if (this.#tokens < 0)
      await new Promise(resolve => setTimeout(resolve, (-this.#tokens / this.#perSecond) * 1000))
  }

  #refill(now: number): void {
    const gained = ((now - this.#since) / 1000) * this.#perSecond
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(gained, 0))
    this.#since = now
  }
}

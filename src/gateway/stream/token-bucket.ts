/** So many at once, and so many a second after that. */
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

  take(now = performance.now()): boolean {
    const gained = ((now - this.#since) / 1000) * this.#perSecond
    this.#tokens = Math.min(this.#burst, this.#tokens + Math.max(gained, 0))
    this.#since = now
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}

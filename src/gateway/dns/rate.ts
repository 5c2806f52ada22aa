/** At most so many in a second, with a second's worth at once. */
export class DnsRate {
  readonly #perMs: number
  readonly #burst: number
  #left: number
  #last = 0

  constructor(perSecond: number) {
    this.#perMs = perSecond / 1000
    this.#burst = perSecond
    this.#left = perSecond
  }

  take(now = performance.now()): boolean {
    this.#left = Math.min(this.#burst, this.#left + (now - this.#last) * this.#perMs)
    this.#last = now
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}

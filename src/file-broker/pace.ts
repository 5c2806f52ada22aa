/** So many at once, and so many a second after that. Whoever comes too early waits: a flood is slow, and nothing of it is lost. */
export class Pace {
  readonly #burst: number
  readonly #perSecond: number
  #tokens: number
  #since = performance.now()

  constructor(burst: number, perSecond: number) {
    this.#burst = burst
    this.#perSecond = perSecond
    this.#tokens = burst
  }

  async turn(): Promise<void> {
    const now = performance.now()
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#since) / 1000) * this.#perSecond) - 1
    this.#since = now
    // Those who wait have taken their turn already: the next waits behind them.
    if (this.#tokens < 0)
      await new Promise(resolve => setTimeout(resolve, (-this.#tokens / this.#perSecond) * 1000))
  }
}

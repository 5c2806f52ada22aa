/** Grants a limited number of permits. Further callers wait in order. */
export class Semaphore {
  readonly #permits: number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(permits: number) {
    this.#permits = permits
  }

  get taken(): number {
    return this.#taken
  }

  acquire(): Promise<void> {
    if (this.#taken < this.#permits) {
      this.#taken++
      return Promise.resolve()
    }
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  release(): void {
    // The permit passes to the next caller without becoming free in between.
    const next = this.#waiting.shift()
    if (next === undefined) this.#taken--
    else next()
  }
}

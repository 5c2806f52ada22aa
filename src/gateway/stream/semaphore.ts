/** Lets so many in at once; the others wait in the order they came. */
export class Semaphore {
  readonly #places: number
  readonly #waiting: (() => void)[] = []
  #inside = 0

  constructor(places: number) {
    this.#places = places
  }

  get inside(): number {
    return this.#inside
  }

  enter(): Promise<void> {
    if (this.#inside < this.#places) {
      this.#inside++
      return Promise.resolve()
    }
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  leave(): void {
    // The place passes on to the next in line without becoming free in between.
    const next = this.#waiting.shift()
    if (next === undefined) this.#inside--
    else next()
  }
}

/** What waits to be written to a socket that takes as much as it has room for, and says how much that was. */
export class Outbox {
  readonly #write: (bytes: Uint8Array) => number
  #queue: Uint8Array[] = []
  #backlog = 0
  #waiting: (() => void)[] = []
  #closed: boolean = false

  constructor(write: (bytes: Uint8Array) => number) {
    this.#write = write
  }

  /** Bytes that the socket did not take yet: for the sender to keep within bounds. */
  get backlog(): number {
    return this.#backlog
  }

  send(bytes: Uint8Array): void {
    if (this.#closed) return
    this.#queue.push(bytes)
    this.#backlog += bytes.length
    if (this.#queue.length === 1) this.drain()
  }

  /** To be called when the socket has room again. */
  drain(): void {
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      const taken = Math.max(0, this.#write(first))
      this.#backlog -= taken
      if (taken < first.length) {
        this.#queue[0] = first.subarray(taken)
        return
      }
      this.#queue.shift()
    }
    this.#wake()
  }

  /** Undefined when nothing waits: then there is room at once. */
  room(): Promise<void> | undefined {
    if (this.#backlog === 0) return undefined
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  /** Nothing is written any more, and nobody waits. */
  close(): void {
    this.#closed = true
    this.#queue = []
    this.#backlog = 0
    this.#wake()
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}

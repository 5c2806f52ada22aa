/** Bytes that wait for a socket, which takes only as much as it has room for. */
export class Outbox {
  readonly #write: (bytes: Uint8Array) => number
  #queue: Uint8Array[] = []
  #backlog = 0
  #waiting: (() => void)[] = []
  #closed: boolean = false

  constructor(write: (bytes: Uint8Array) => number) {
    this.#write = write
  }

  /** Bytes that the socket did not take yet. The sender must bound them. */
  get backlog(): number {
    return this.#backlog
  }

  send(bytes: Uint8Array): void {
    if (this.#closed) return
    this.#queue.push(bytes)
    this.#backlog += bytes.length
    if (this.#queue.length === 1) this.drain()
  }

  /** Call it when the socket has room again. */
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

  /** Undefined when nothing waits: there is room now. */
  room(): Promise<void> | undefined {
    if (this.#backlog === 0) return undefined
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  /** Writes nothing more, and resolves every wait. */
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

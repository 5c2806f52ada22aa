/** Output within a bound: its beginning and its end are kept, because errors stand at the end and headings at the beginning. */
export class CapturedOutput {
  readonly #most: number
  readonly #head = new Bytes()
  readonly #tail = new Bytes()
  #total = 0

  constructor(most: number) {
    this.#most = most
  }

  get truncated(): boolean {
    return this.#total > this.#most
  }

  /** The bytes may be reused afterwards. */
  push(bytes: Uint8Array): void {
    this.#total += bytes.length
    const room = Math.max(0, Math.ceil(this.#most / 2) - this.#head.length)
    this.#head.push(bytes.subarray(0, room))
    this.#tail.push(bytes.subarray(room))
    // Only now and then: each byte is copied a few times at most.
    if (this.#tail.length > 2 * this.#most + 65_536) this.#trim()
  }

  text(): string {
    this.#trim()
    const [head, tail] = [this.#head.view(), this.#tail.view()]
    if (!this.truncated) return Buffer.concat([head, tail]).toString('utf8')
    const left = this.#total - head.length - tail.length
    return `${head.toString('utf8')}\n… ${left} bytes left out …\n${tail.toString('utf8')}`
  }

  #trim(): void {
    this.#tail.keepLast(Math.floor(this.#most / 2))
  }
}

/** In one piece of memory: a program that writes byte by byte would cost a hundred times as much in pieces of its own. */
class Bytes {
  #memory = Buffer.alloc(0)
  #length = 0

  get length(): number {
    return this.#length
  }

  push(bytes: Uint8Array): void {
    const needed = this.#length + bytes.length
    if (needed > this.#memory.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#memory.length, 1024))
      larger.set(this.view())
      this.#memory = larger
    }
    this.#memory.set(bytes, this.#length)
    this.#length = needed
  }

  view(): Buffer {
    return this.#memory.subarray(0, this.#length)
  }

  keepLast(most: number): void {
    if (this.#length <= most) return
    this.#memory.copyWithin(0, this.#length - most, this.#length)
    this.#length = most
  }
}

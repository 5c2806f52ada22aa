/** Output within a bound: its beginning and its end are kept, because errors stand at the end and headings at the beginning. */
export class KeptOutput {
  readonly #most: number
  readonly #head: Uint8Array[] = []
  #headBytes = 0
  #tail: Uint8Array[] = []
  #tailBytes = 0
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
    const half = Math.ceil(this.#most / 2)
    const room = half - this.#headBytes
    if (room > 0) {
      this.#head.push(bytes.slice(0, room))
      this.#headBytes += Math.min(room, bytes.length)
    }
    if (bytes.length <= room) return
    this.#tail.push(bytes.slice(Math.max(room, 0)))
    this.#tailBytes += bytes.length - Math.max(room, 0)
    // Only now and then: each piece is copied a few times at most.
    if (this.#tailBytes > 2 * this.#most + 65_536) this.#trim()
  }

  text(): string {
    this.#trim()
    const head = Buffer.concat(this.#head)
    const tail = Buffer.concat(this.#tail)
    if (!this.truncated) return Buffer.concat([head, tail]).toString('utf8')
    const left = this.#total - head.length - tail.length
    return `${head.toString('utf8')}\n… ${left} bytes left out …\n${tail.toString('utf8')}`
  }

  #trim(): void {
    const most = Math.floor(this.#most / 2)
    if (this.#tailBytes <= most) return
    const all = Buffer.concat(this.#tail)
    this.#tail = [all.subarray(all.length - most)]
    this.#tailBytes = most
  }
}

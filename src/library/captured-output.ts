import type { CommandEnd, ExecResult } from './exec-options.ts'

/** Bounded output. It keeps the beginning, which has headings, and the end, which has errors. */
export class CapturedOutput {
  readonly #maxBytes: number
  readonly #head = new Bytes()
  readonly #tail = new Bytes()
  #total = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get truncated(): boolean {
    return this.#total > this.#maxBytes
  }

  /** Copies the bytes. */
  push(bytes: Uint8Array): void {
    this.#total += bytes.length
    const room = Math.max(0, Math.ceil(this.#maxBytes / 2) - this.#head.length)
    this.#head.push(bytes.subarray(0, room))
    this.#tail.push(bytes.subarray(room))
    // Trim rarely, so that each byte is copied a few times at most.
    if (this.#tail.length > 2 * this.#maxBytes + 65_536) this.#trim()
  }

  text(): string {
    this.#trim()
    const [head, tail] = [this.#head.view(), this.#tail.view()]
    if (!this.truncated) return Buffer.concat([head, tail]).toString('utf8')
    const left = this.#total - head.length - tail.length
    return `${head.toString('utf8')}\n… ${left} bytes left out …\n${tail.toString('utf8')}`
  }

  #trim(): void {
    this.#tail.keepLast(Math.floor(this.#maxBytes / 2))
  }
}

/** @internal */
export interface CapturedStreams {
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
}

/** @internal */
export const captureStreams = (maxBytes: number): CapturedStreams => ({
  stdout: new CapturedOutput(maxBytes),
  stderr: new CapturedOutput(maxBytes),
})

/** `failure` says why the command did not start. It then replaces stderr. @internal */
export const resultOf = (
  end: CommandEnd,
  { stdout, stderr }: CapturedStreams,
  failure: string | undefined,
): ExecResult => ({
  ...end,
  stdout: stdout.text(),
  stderr: failure === undefined ? stderr.text() : `pen: ${failure}\n`,
  truncated: stdout.truncated || stderr.truncated,
})

/** A growing buffer. A list of chunks would cost a hundred times the memory for a program that writes byte by byte. */
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

  keepLast(count: number): void {
    if (this.#length <= count) return
    this.#memory.copyWithin(0, this.#length - count, this.#length)
    this.#length = count
  }
}

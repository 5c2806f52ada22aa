import type { CommandEnd, ExecResult } from './exec-options.ts'

/** Small pieces are joined beyond this number: each costs a hundred bytes of memory. */
const MAX_PIECES = 16_384

/** Bounded output. It keeps the beginning, which has headings, and the end, which has errors. */
export class CapturedOutput {
  readonly #maxBytes: number
  #pieces: Buffer[] = []
  /** The size of the pieces. */
  #size = 0
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
    this.#size += bytes.length
    this.#pieces.push(Buffer.from(bytes))
    // Join rarely, so that each byte is copied a few times at most.
    if (this.#pieces.length > MAX_PIECES || this.#size > 2 * this.#maxBytes + 65_536) this.#join()
  }

  text(): string {
    const [head, tail] = this.#join()
    if (!this.truncated) return Buffer.concat([head, tail]).toString('utf8')
    const left = this.#total - head.length - tail.length
    return `${head.toString('utf8')}\n… ${left} bytes left out …\n${tail.toString('utf8')}`
  }

  /** Drops the middle. */
  #join(): readonly [head: Buffer, tail: Buffer] {
    const all = Buffer.concat(this.#pieces)
    const end = Math.ceil(this.#maxBytes / 2)
    const head = Buffer.from(all.subarray(0, end))
    const tail = Buffer.from(all.subarray(Math.max(end, all.length - Math.floor(this.#maxBytes / 2))))
    this.#pieces = [head, tail]
    this.#size = head.length + tail.length
    return [head, tail]
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

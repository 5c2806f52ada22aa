/** The output of a command as it comes: what a model is told when the sandbox ends before the command, and whether it is text. */
import { CapturedOutput } from '../library/captured-output.ts'

type Stream = 'stdout' | 'stderr'

export class HeardOutput {
  readonly #streams: Readonly<Record<Stream, HeardStream>>

  constructor(most: number) {
    this.#streams = { stdout: new HeardStream(most), stderr: new HeardStream(most) }
  }

  push(stream: Stream, bytes: Uint8Array): void {
    this.#streams[stream].push(bytes)
  }

  get size(): number {
    return this.#streams.stdout.size + this.#streams.stderr.size
  }

  /** The streams that hold NUL bytes, or bytes that are not UTF-8. */
  get binary(): readonly Stream[] {
    return (['stdout', 'stderr'] as const).filter(stream => this.#streams[stream].isBinary)
  }

  text(stream: Stream): string {
    return this.#streams[stream].text()
  }
}

class HeardStream {
  readonly #kept: CapturedOutput
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  size = 0
  isBinary: boolean = false

  constructor(most: number) {
    this.#kept = new CapturedOutput(most)
  }

  push(bytes: Uint8Array): void {
    this.size += bytes.length
    this.#kept.push(bytes)
    if (this.isBinary) return
    try {
      this.#decoder.decode(bytes, { stream: true })
      this.isBinary = bytes.includes(0)
    } catch {
      this.isBinary = true
    }
  }

  text(): string {
    return legible(this.#kept.text())
  }
}

/** A NUL takes six characters of JSON, and says nothing to a model. */
export const legible = (text: string): string => text.replaceAll('\0', '\ufffd')

/** The output of a command so far: for a sandbox that ends before the command, and to detect binary output. */
import { CapturedOutput } from '../library/captured-output.ts'

type Stream = 'stdout' | 'stderr'

export class StreamedOutput {
  readonly #streams: Readonly<Record<Stream, StreamState>>

  constructor(maxBytes: number) {
    this.#streams = { stdout: new StreamState(maxBytes), stderr: new StreamState(maxBytes) }
  }

  push(stream: Stream, bytes: Uint8Array): void {
    this.#streams[stream].push(bytes)
  }

  get size(): number {
    return this.#streams.stdout.size + this.#streams.stderr.size
  }

  /** The streams with NUL bytes or with invalid UTF-8. */
  get binary(): readonly Stream[] {
    return (['stdout', 'stderr'] as const).filter(stream => this.#streams[stream].isBinary)
  }

  text(stream: Stream): string {
    return this.#streams[stream].text()
  }
}

class StreamState {
  readonly #captured: CapturedOutput
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  size = 0
  isBinary: boolean = false

  constructor(maxBytes: number) {
    this.#captured = new CapturedOutput(maxBytes)
  }

  push(bytes: Uint8Array): void {
    this.size += bytes.length
    this.#captured.push(bytes)
    if (this.isBinary) return
    try {
      this.#decoder.decode(bytes, { stream: true })
      this.isBinary = bytes.includes(0)
    } catch {
      this.isBinary = true
    }
  }

  text(): string {
    return withoutNul(this.#captured.text())
  }
}

/** Replaces NUL bytes: each takes six characters of JSON and means nothing to a model. */
export const withoutNul = (text: string): string => text.replaceAll('\0', '\ufffd')

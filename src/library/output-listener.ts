/** Who sees a command's output as it comes. One that fails has lost what it was to see: the command is ended, and the call fails with that. */
import type { ExecOptions } from './exec-options.ts'

type Stream = 'stdout' | 'stderr'

/** @internal */
export class OutputListener {
  readonly failed: Promise<void>
  readonly #onOutput: ExecOptions['onOutput']
  #fail: () => void = () => undefined
  #failure: { readonly error: unknown } | undefined

  constructor(onOutput: ExecOptions['onOutput']) {
    this.#onOutput = onOutput
    this.failed = new Promise(resolve => {
      this.#fail = resolve
    })
  }

  /** A promise holds the stream back. */
  hear(stream: Stream, bytes: Uint8Array): undefined | Promise<void> {
    if (this.#onOutput === undefined || this.#failure !== undefined) return undefined
    try {
      const heard = this.#onOutput(stream, bytes)
      return heard instanceof Promise ? heard.catch(error => this.#giveUp(error)) : undefined
    } catch (error) {
      this.#giveUp(error)
      return undefined
    }
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  #giveUp(error: unknown): void {
    this.#failure ??= { error }
    this.#fail()
  }
}

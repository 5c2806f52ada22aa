/** Calls `onOutput` of a command. When it throws, the command is killed and the call fails with that error. */
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

  /** A returned promise pauses the stream. */
  push(stream: Stream, bytes: Uint8Array): undefined | Promise<void> {
    if (this.#onOutput === undefined || this.#failure !== undefined) return undefined
    try {
      const returned = this.#onOutput(stream, bytes)
      return returned instanceof Promise ? returned.catch(error => this.#stop(error)) : undefined
    } catch (error) {
      this.#stop(error)
      return undefined
    }
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  #stop(error: unknown): void {
    this.#failure ??= { error }
    this.#fail()
  }
}

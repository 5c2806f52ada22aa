/**
 * A connection inside a sandbox with a kernel of its own, which the host cannot dial. Its bytes travel on a channel of
 * the exec daemon. To the gateway and the file broker it is a socket like any other. What it receives is hostile.
 */
import { PenError } from '../base/error.ts'
import type { SocketEvents, StreamSocket } from '../gateway/stream/stream-socket.ts'
import type { ExecOutput } from './backend.ts'
import type { ConnectionEvents, DaemonExecution } from './daemon-execution.ts'

export class ChannelSocket implements StreamSocket {
  /** Rejects when no server listens, or the sandbox ends first. */
  readonly opened: Promise<void>
  /** Resolves when the exec daemon has ended the channel. */
  readonly ended: Promise<void>
  readonly isSecure = false
  readonly descriptor = undefined
  readonly unread = 0
  readonly #execution: DaemonExecution
  #events: SocketEvents | undefined
  /** Output waits for this: until there is a listener, and while the listener pauses. */
  #gate: PromiseWithResolvers<void> | undefined = Promise.withResolvers<void>()
  #unsent = 0
  #hasEnded: boolean = false
  #isEnding: boolean = false
  #isClosed: boolean = false

  constructor(begin: (output: ExecOutput, events: ConnectionEvents) => DaemonExecution) {
    const opening = Promise.withResolvers<void>()
    this.opened = opening.promise
    this.opened.catch(() => undefined)
    const execution = begin((_, bytes) => this.#receive(Buffer.from(bytes)), {
      started: () => opening.resolve(),
      outputEnded: () => this.#takeEnd(),
    })
    this.#execution = execution
    this.ended = execution.ended.then(ending => {
      opening.reject(new PenError('CONNECT', { what: 'no server of the sandbox listens there' }))
      this.#close(ending.kind !== 'exit' || ending.code !== 0)
    })
  }

  attach(events: SocketEvents): void {
    this.#events = events
    this.resume()
    if (this.#hasEnded) events.end()
    if (this.#isClosed) queueMicrotask(() => events.close(true))
  }

  write(bytes: Uint8Array): boolean {
    if (!this.isWritable) return true
    this.#unsent += bytes.length
    void this.#execution.write(bytes).then(() => {
      this.#unsent -= bytes.length
      if (this.#unsent === 0 && !this.#isClosed) this.#events?.drain()
    })
    return false
  }

  startTls(): Promise<unknown> {
    return Promise.resolve(new Error('this connection cannot go on as TLS'))
  }

  end(): void {
    if (!this.isWritable) return
    this.#isEnding = true
    this.#execution.endInput()
  }

  pause(): void {
    this.#gate ??= Promise.withResolvers<void>()
  }

  resume(): void {
    this.#gate?.resolve()
    this.#gate = undefined
  }

  /** The exec daemon may be hostile, so the listener does not wait for its answer. */
  destroy(): void {
    if (this.#isClosed) return
    this.#execution.kill()
    this.#close(!(this.#hasEnded && this.#isEnding))
  }

  reset(): void {
    this.destroy()
  }

  get isWritable(): boolean {
    return !(this.#isClosed || this.#isEnding)
  }

  get unsent(): number {
    return this.#isClosed ? 0 : this.#unsent
  }

  async #receive(bytes: Buffer): Promise<void> {
    await this.#gate?.promise
    if (!this.#isClosed) this.#events?.data(bytes)
    await this.#gate?.promise
  }

  #takeEnd(): void {
    this.#hasEnded = true
    this.#events?.end()
  }

  #close(isBroken: boolean): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.resume()
    const events = this.#events
    // Asynchronous, because `destroy` also leads here, in the middle of a caller.
    queueMicrotask(() => events?.close(isBroken))
  }
}

/** A Unix stream of the runtime's own, for both ends of the control socket: node:net costs a command more than all the rest. */
import { Outbox } from '../protocol/outbox.ts'
import type { ControlEvents, ControlStream } from './stream.ts'

type Native = Bun.Socket<ControlSocket> & { readonly fd: number }

export class ControlSocket implements ControlStream {
  #native: Native | undefined
  #events: ControlEvents | undefined
  readonly #outbox = new Outbox(bytes => this.#native?.write(bytes) ?? 0)
  #isEnding: boolean = false
  #isClosed: boolean = false

  attach(events: ControlEvents): void {
    this.#events = events
  }

  /** In order. What the other end does not take stays in memory: whoever sends keeps it within bounds. */
  send(bytes: Uint8Array): void {
    if (!this.#isEnding) this.#outbox.send(bytes)
  }

  /** Undefined when everything has been taken. */
  room(): Promise<void> | undefined {
    return this.#outbox.room()
  }

  /** After what was sent. */
  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    const sent = this.#outbox.room()
    if (sent === undefined) this.#native?.end()
    else void sent.then(() => this.#native?.end())
  }

  destroy(): void {
    this.#native?.terminate()
  }

  get descriptor(): number | undefined {
    return this.#native?.fd
  }

  static readonly handlers: Bun.SocketHandler<ControlSocket> = {
    open: native => {
      native.data.#native = native as Native
    },
    data: (native, bytes) => native.data.#events?.data(bytes),
    drain: native => native.data.#outbox.drain(),
    close: native => native.data.#close(),
    end: native => native.data.#close(),
    error: native => native.data.#close(),
    connectError: () => undefined,
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#outbox.close()
    this.#events?.closed()
  }
}

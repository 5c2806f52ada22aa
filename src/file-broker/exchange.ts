/** One active request: connects the messages of the client with the operation that waits for them. */
import type { Reply } from '../protocol/broker-messages.ts'
import { Allowance, Credit } from '../protocol/window.ts'
import type { Refusal } from './refusal.ts'

/** Smaller pieces are merged. */
const SMALL = 1024

type Unnumbered<T> = T extends unknown ? Omit<T, 'channel'> : never

/** A reply to this request. */
export type Answer = Unnumbered<Reply>

/** The connection that a request came from. */
export interface Peer {
  send(answer: Answer): void
  /** Waits until the socket has room. */
  room(): Promise<void>
}

export class Exchange {
  readonly #peer: Peer
  readonly #credit = new Credit()
  readonly #allowance = new Allowance()
  readonly #incoming: Uint8Array[] = []
  #isComplete: boolean = false
  #end: Refusal | undefined
  #wake: () => void = () => undefined
  /** When bytes or credit last moved. */
  movedAt = performance.now()
  /** Bytes of file content, in either direction. */
  bytes = 0

  constructor(peer: Peer) {
    this.#peer = peer
  }

  // Called by the connection.

  granted(bytes: number): void {
    this.#credit.grant(bytes)
    this.#moved()
  }

  received(bytes: Uint8Array): void {
    this.#allowance.receive(bytes.length)
    const last = this.#incoming.at(-1)
    // Single bytes would take a hundred times the memory of the window.
    if (last !== undefined && last.length + bytes.length <= SMALL)
      this.#incoming[this.#incoming.length - 1] = Buffer.concat([last, bytes])
    else this.#incoming.push(bytes)
    this.#moved()
  }

  completed(): void {
    this.#isComplete = true
    this.#moved()
  }

  /** Ends the wait of the operation with a refusal. */
  end(refusal: Refusal): void {
    this.#end ??= refusal
    this.#wake()
  }

  // Called by the operation.

  send(answer: Answer): void {
    this.#peer.send(answer)
  }

  /** Waits until the client reads. Returns how many bytes may be sent. */
  async room(): Promise<number> {
    await this.#until(() => this.#credit.left > 0)
    await this.#peer.room()
    this.#refuseIfEnded()
    return this.#credit.left
  }

  sendData(bytes: Uint8Array): void {
    this.#credit.spend(bytes.length)
    this.#peer.send({ kind: 'data', bytes })
    this.bytes += bytes.length
    this.movedAt = performance.now()
  }

  /** The next piece. Undefined when the client has sent everything. */
  async nextData(): Promise<Uint8Array | undefined> {
    await this.#until(() => this.#incoming.length > 0 || this.#isComplete)
    return this.#incoming.shift()
  }

  /** The bytes are written. Lets the client send as many more. */
  used(bytes: number): void {
    this.bytes += bytes
    const granted = this.#allowance.use(bytes)
    if (granted > 0) this.#peer.send({ kind: 'window', bytes: granted })
  }

  #moved(): void {
    this.movedAt = performance.now()
    this.#wake()
  }

  async #until(isReady: () => boolean): Promise<void> {
    for (;;) {
      this.#refuseIfEnded()
      if (isReady()) return
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  #refuseIfEnded(): void {
    if (this.#end !== undefined) throw this.#end
  }
}

/** One request under way: what the client sends and grants meets what the operation waits for. */
import type { Reply } from '../protocol/broker-messages.ts'
import { Allowance, Credit } from '../protocol/window.ts'
import type { Refusal } from './refusal.ts'

/** Pieces that are kept together. */
const SMALL = 1024

type Unnumbered<T> = T extends unknown ? Omit<T, 'channel'> : never

/** A reply to this request. */
export type Answer = Unnumbered<Reply>

/** The connection that a request came from. */
export interface Peer {
  send(answer: Answer): void
  /** Until what was sent has left, so far that more may follow. */
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
  #movedAt = performance.now()
  #bytes = 0

  constructor(peer: Peer) {
    this.#peer = peer
  }

  /** Since when nothing moved. */
  get movedAt(): number {
    return this.#movedAt
  }

  /** Of content, in whichever direction. */
  get bytes(): number {
    return this.#bytes
  }

  // What the connection tells.

  granted(bytes: number): void {
    this.#credit.grant(bytes)
    this.#moved()
  }

  received(bytes: Uint8Array): void {
    this.#allowance.receive(bytes.length)
    const last = this.#incoming.at(-1)
    // Byte by byte a window would take a hundred times its room.
    if (last !== undefined && last.length + bytes.length <= SMALL)
      this.#incoming[this.#incoming.length - 1] = Buffer.concat([last, bytes])
    else this.#incoming.push(bytes.slice())
    this.#moved()
  }

  completed(): void {
    this.#isComplete = true
    this.#moved()
  }

  /** Whatever the operation waits for will not come: it stops here. */
  end(refusal: Refusal): void {
    this.#end ??= refusal
    this.#wake()
  }

  // What the operation does.

  send(answer: Answer): void {
    this.#peer.send(answer)
  }

  /** How many bytes may be sent now; waits until there is a reader for at least one. */
  async room(): Promise<number> {
    await this.#until(() => this.#credit.left > 0)
    await this.#peer.room()
    this.#refuseIfEnded()
    return this.#credit.left
  }

  sendData(bytes: Uint8Array): void {
    this.#credit.spend(bytes.length)
    this.#peer.send({ kind: 'data', bytes })
    this.#bytes += bytes.length
    this.#movedAt = performance.now()
  }

  /** The next piece; undefined when the client has said that this was all. */
  async nextData(): Promise<Uint8Array | undefined> {
    await this.#until(() => this.#incoming.length > 0 || this.#isComplete)
    return this.#incoming.shift()
  }

  /** Those bytes are on the disk: as many more may come. */
  used(bytes: number): void {
    this.#bytes += bytes
    const granted = this.#allowance.use(bytes)
    if (granted > 0) this.#peer.send({ kind: 'window', bytes: granted })
  }

  #moved(): void {
    this.#movedAt = performance.now()
    this.#wake()
  }

  async #until(isSo: () => boolean): Promise<void> {
    for (;;) {
      this.#refuseIfEnded()
      if (isSo()) return
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  #refuseIfEnded(): void {
    if (this.#end !== undefined) throw this.#end
  }
}

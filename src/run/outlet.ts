import { CHANNEL } from '../control/messages.ts'
import type { Report, Stream } from '../protocol/exec-messages.ts'
import { MAX_PAYLOAD } from '../protocol/frame.ts'
import { Credit } from '../protocol/window.ts'

/** One output stream to the client. Bytes within the client's credit go at once, the rest when it grants more. */
export class Outlet {
  readonly #stream: Stream
  readonly #credit = new Credit()
  #waiting: { bytes: Uint8Array; readonly sent: () => void } | undefined
  #isDropped: boolean = false

  constructor(stream: Stream) {
    this.#stream = stream
  }

  put(bytes: Uint8Array, send: (report: Report) => void): undefined | Promise<void> {
    if (this.#isDropped) return undefined
    const rest = this.#push(bytes, send)
    if (rest.length === 0) return undefined
    // The caller waits for this promise, so at most one piece is buffered.
    return new Promise(sent => {
      this.#waiting = { bytes: rest.slice(), sent }
    })
  }

  grant(bytes: number, send: (report: Report) => void): void {
    this.#credit.grant(bytes)
    const waiting = this.#waiting
    if (waiting === undefined) return
    waiting.bytes = this.#push(waiting.bytes, send)
    if (waiting.bytes.length > 0) return
    this.#waiting = undefined
    waiting.sent()
  }

  drop(): void {
    this.#isDropped = true
    this.#waiting?.sent()
    this.#waiting = undefined
  }

  #push(bytes: Uint8Array, send: (report: Report) => void): Uint8Array {
    let at = 0
    while (at < bytes.length && this.#credit.left > 0) {
      const piece = bytes.subarray(at, at + Math.min(MAX_PAYLOAD, this.#credit.left))
      this.#credit.spend(piece.length)
      send({ kind: this.#stream, channel: CHANNEL, bytes: piece })
      at += piece.length
    }
    return bytes.subarray(at)
  }
}

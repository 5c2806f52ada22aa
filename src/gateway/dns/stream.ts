import type { SocketEvents, StreamSocket } from '../stream/stream-socket.ts'
import { MAX_QUERY } from './message.ts'

const IDLE_MS = 10_000
const LIFE_MS = 60_000
const MAX_QUERIES = 1000
const MAX_UNSENT = 64 * 1024

/** One DNS connection over TCP. Each query has a two-byte length. Invalid input closes the connection. */
export class DnsStream implements SocketEvents {
  readonly #socket: StreamSocket
  readonly #answer: (query: Buffer) => Buffer | undefined
  readonly #onClose: () => void
  readonly #life: ReturnType<typeof setTimeout>
  #idle: ReturnType<typeof setTimeout> | undefined
  #pending: Buffer = Buffer.alloc(0)
  #queries = 0

  constructor(socket: StreamSocket, answer: (query: Buffer) => Buffer | undefined, onClose: () => void) {
    this.#socket = socket
    this.#answer = answer
    this.#onClose = onClose
    this.#life = setTimeout(() => socket.destroy(), LIFE_MS)
    this.#life.unref()
    this.#waitForMore()
    socket.attach(this)
  }

  data(bytes: Buffer): void {
    this.#waitForMore()
    if (!this.#take(bytes)) this.#socket.destroy()
  }

  end(): void {
    this.#socket.end()
  }

  drain(): void {}

  close(): void {
    clearTimeout(this.#life)
    clearTimeout(this.#idle)
    this.#onClose()
  }

  #waitForMore(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => this.#socket.destroy(), IDLE_MS)
    this.#idle.unref()
  }

  /** False when the connection must end. */
  #take(bytes: Buffer): boolean {
    let rest = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    while (rest.length >= 2) {
      const length = rest.readUInt16BE(0)
      if (length > MAX_QUERY) return false
      if (rest.length < 2 + length) break
      const reply = this.#answer(rest.subarray(2, 2 + length))
      if (reply === undefined || ++this.#queries > MAX_QUERIES) return false
      if (!this.#write(reply)) return false
      rest = rest.subarray(2 + length)
    }
    // At most one incomplete query is kept, because longer ones are refused above.
    this.#pending = Buffer.from(rest)
    return true
  }

  /** False when the client does not read its replies, which would fill pen's memory. */
  #write(reply: Buffer): boolean {
    const framed = Buffer.allocUnsafe(2 + reply.length)
    framed.writeUInt16BE(reply.length, 0)
    reply.copy(framed, 2)
    this.#socket.write(framed)
    return this.#socket.unsent <= MAX_UNSENT
  }
}

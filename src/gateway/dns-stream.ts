import type { Socket } from 'node:net'
import { MAX_QUERY } from './dns-message.ts'

const IDLE_MS = 10_000
const LIFE_MS = 60_000
const MAX_QUERIES = 1000
const MAX_UNSENT = 64 * 1024

/** One TCP connection: queries with two bytes of length before each, answered in order. What is odd ends it. */
export class DnsStream {
  readonly #socket: Socket
  readonly #answer: (query: Buffer) => Buffer | undefined
  #pending: Buffer = Buffer.alloc(0)
  #queries = 0

  constructor(socket: Socket, answer: (query: Buffer) => Buffer | undefined) {
    this.#socket = socket
    this.#answer = answer
  }

  start(): void {
    const socket = this.#socket
    const end = (): void => void socket.destroy()
    const life = setTimeout(end, LIFE_MS)
    life.unref()
    socket.setTimeout(IDLE_MS, end)
    socket.on('error', end)
    socket.on('close', () => clearTimeout(life))
    socket.on('end', () => socket.end())
    socket.on('data', (bytes: Buffer) => {
      if (!this.#take(bytes)) end()
    })
  }

  /** False when the connection has to end. */
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
    // Never more than one query that is not whole: longer ones were refused above.
    this.#pending = Buffer.from(rest)
    return true
  }

  /** A client that asks and does not read may not make pen hold its answers. */
  #write(reply: Buffer): boolean {
    const framed = Buffer.allocUnsafe(2 + reply.length)
    framed.writeUInt16BE(reply.length, 0)
    reply.copy(framed, 2)
    this.#socket.write(framed)
    return this.#socket.writableLength <= MAX_UNSENT
  }
}

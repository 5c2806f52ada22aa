/**
 * Watches a connection that speaks neither TLS nor HTTP by its first bytes, until the server has answered. What the
 * client sends is searched for a request, and an answer in HTTP shows that the server took the bytes for one. A server
 * that answers in another protocol is no HTTP server, and both directions run free from then on.
 */
import { RequestScan } from './http/request-scan.ts'
import type { ByteStream } from './stream/byte-stream.ts'

const ANSWER = Buffer.from('HTTP/')

export class OpaqueGate {
  readonly #client: ByteStream
  readonly #scan = new RequestScan()
  /** Bytes that the client holds and the scan has seen. */
  #seen = 0

  constructor(client: ByteStream) {
    this.#client = client
  }

  /** Searches what is held, before a server is dialled for it. */
  check(): string | undefined {
    const { held } = this.#client
    const found = this.#scan.found(held.subarray(this.#seen))
    this.#seen = held.length
    return found === undefined ? undefined : `some server would read a request in them, by ${found}`
  }

  watch(upstream: ByteStream, refuse: (why: string) => void): void {
    const client = this.#client
    client.gate = held => {
      const why = this.check()
      this.#seen = 0
      if (why === undefined) return held.length
      refuse(why)
      return 0
    }
    upstream.gate = held => {
      const start = held.subarray(0, ANSWER.length)
      if (!ANSWER.subarray(0, start.length).equals(start)) {
        upstream.gate = undefined
        client.openGate()
        return held.length
      }
      if (start.length === ANSWER.length) refuse('the server answered them as an HTTP request')
      return 0
    }
  }
}

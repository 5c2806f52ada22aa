/**
 * Watches a connection whose first bytes are neither TLS nor HTTP, until the server answers. The gate searches the
 * client's bytes for an HTTP request. An HTTP answer shows that the server read one. When the server answers in another
 * protocol, the gate opens in both directions.
 */
import { RequestScan } from './http/request-scan.ts'
import type { ByteStream } from './stream/byte-stream.ts'

const ANSWER = Buffer.from('HTTP/')

export class OpaqueGate {
  readonly #client: ByteStream
  readonly #scan = new RequestScan()
  /** How many of the held bytes were scanned. */
  #seen = 0

  constructor(client: ByteStream) {
    this.#client = client
  }

  /** Scans the held bytes before a server is dialled. */
  check(): string | undefined {
    const { held } = this.#client
    const found = this.#scan.found(held.subarray(this.#seen))
    this.#seen = held.length
    return found === undefined
      ? undefined
      : `a lenient server could read them as an HTTP request, because of ${found}`
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

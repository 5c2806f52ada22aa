/**
 * Judges a second ClientHello. A server that asks for one (HelloRetryRequest) may use the name in it. A hostile client may
 * send it before the server asks. So the gate reads client records until the server's answer shows that it asks for none.
 */
import type { ByteStream } from '../stream/byte-stream.ts'
import { CLIENT_HELLO, HANDSHAKE, type HelloReading, readClientHello } from './client-hello.ts'

const RECORD_HEAD = 5
/** RFC 8446, 4.1.3: a HelloRetryRequest is a ServerHello with this random, after two headers and a version. */
const RANDOM_AT = 11
const RETRY = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex')

export interface HelloGate {
  readonly client: ByteStream
  readonly upstream: ByteStream
  readonly maxHello: number
  /** The length of the first ClientHello, which has been judged. */
  readonly judged: number
  /** Refuses the connection and returns true when the name is not allowed. */
  readonly refuses: (reading: Exclude<HelloReading, { kind: 'more' }>) => boolean
}

export function watchForSecondHello({ client, upstream, maxHello, judged, refuses }: HelloGate): void {
  let skip = judged
  let isRetried: boolean = false
  const open = (held: Buffer): number => {
    client.gate = undefined
    return held.length
  }
  client.gate = held => {
    let at = skip
    skip = 0
    while (at + RECORD_HEAD < held.length) {
      if (held[at] !== HANDSHAKE) {
        at += RECORD_HEAD + held.readUInt16BE(at + 3)
        continue
      }
      // Another handshake message means TLS 1.2, which has no HelloRetryRequest.
      if (held[at + RECORD_HEAD] !== CLIENT_HELLO) return open(held)
      const reading = readClientHello(held.subarray(at), maxHello)
      if (reading.kind === 'more') break
      if (refuses(reading) || reading.kind === 'bad') return 0
      at += reading.length
      if (isRetried) return open(held)
    }
    skip = Math.max(at - held.length, 0)
    return Math.min(at, held.length)
  }

  let answer: Buffer = Buffer.alloc(0)
  upstream.gate = held => {
    answer = Buffer.concat([answer, held])
    if (answer.length >= RANDOM_AT + RETRY.length) {
      upstream.gate = undefined
      isRetried = answer.subarray(RANDOM_AT, RANDOM_AT + RETRY.length).equals(RETRY)
      if (!isRetried) client.openGate()
    }
    return held.length
  }
}

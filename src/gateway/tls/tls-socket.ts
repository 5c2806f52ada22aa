/** TLS to an upstream proxy. It is rare, so it uses the ordinary streams of Node. */
import { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import type { Destination } from '../../policy/network/decide-connection.ts'
import type { ByteStream } from '../stream/byte-stream.ts'
import type { SocketEvents, StreamSocket } from '../stream/stream-socket.ts'

/** The certificate must match the name or address in the user's config. Returns the socket, or a text about the failure. */
export function startTls(plain: ByteStream, to: Destination, ms: number): Promise<StreamSocket | string> {
  // An address is not a server name, but it must match the certificate too.
  const who = 'name' in to ? { host: to.name, servername: to.name } : { host: to.address }
  return new Promise(resolve => {
    const secure = connect({ socket: asDuplex(plain), ...who, ALPNProtocols: ['http/1.1'] })
    const timer = setTimeout(() => secure.destroy(new Error('timeout')), ms)
    const settle = (result: StreamSocket | string): void => {
      clearTimeout(timer)
      resolve(result)
      if (typeof result === 'string') plain.socket.destroy()
    }
    secure.once('secureConnect', () => settle(new TlsSocket(secure)))
    secure.once('close', () => settle(INCOMPLETE))
    secure.on('error', error =>
      settle(isAboutCertificate(error) ? 'the upstream proxy has no valid certificate' : INCOMPLETE),
    )
  })
}

const INCOMPLETE = 'the upstream proxy did not complete its TLS handshake'

const isAboutCertificate = (error: Error): boolean =>
  'code' in error && /CERT|UNABLE_TO|SELF_SIGNED|HOSTNAME|ALTNAME/.test(String(error.code))

/** The encrypted side, as a stream of Node. */
function asDuplex(stream: ByteStream): Duplex {
  const send = async (written: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of written) await stream.write(chunk)
    stream.socket.end()
  }
  const duplex = Duplex.from(async function* (written: AsyncIterable<Buffer>) {
    send(written).catch(() => stream.socket.destroy())
    while (stream.held.length > 0 || (await stream.more())) yield stream.consume(stream.held.length)
    if (stream.broken) throw new Error('reset')
  })
  return duplex.once('close', () => stream.socket.destroy())
}

export class TlsSocket implements StreamSocket {
  /** No descriptor: the kernel holds encrypted bytes, not those of the reader. */
  readonly descriptor = undefined
  readonly #secure: TLSSocket
  #events: SocketEvents | undefined
  #hasEnded: boolean = false

  constructor(secure: TLSSocket) {
    this.#secure = secure
    secure.pause()
    let isBroken = false
    secure.on('data', (chunk: Buffer) => this.#events?.data(chunk))
    secure.on('end', () => {
      this.#hasEnded = true
      this.#events?.end()
    })
    secure.on('drain', () => this.#events?.drain())
    secure.on('error', () => {
      isBroken = true
    })
    secure.on('close', () => this.#events?.close(isBroken || !this.#hasEnded))
  }

  attach(events: SocketEvents): void {
    this.#events = events
    this.#secure.resume()
  }

  write(bytes: Uint8Array): boolean {
    return !this.isWritable || this.#secure.write(bytes)
  }

  end(): void {
    this.#secure.end()
  }

  pause(): void {
    this.#secure.pause()
  }

  resume(): void {
    this.#secure.resume()
  }

  destroy(): void {
    this.#secure.destroy()
  }

  reset(): void {
    this.#secure.destroy()
  }

  get isWritable(): boolean {
    return !this.#secure.destroyed && this.#secure.writable
  }

  get unsent(): number {
    return this.#secure.writableLength
  }

  get unread(): number {
    return this.#secure.readableLength
  }
}

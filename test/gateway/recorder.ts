/**
 * A server that records every connection and every byte. Tests judge by its records, not by what a client
 * received.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createSecure } from 'node:tls'

export interface Seen {
  /** All bytes of one connection, one character per byte. */
  text: string
  ended: boolean
  broken: boolean
  closed: boolean
}

export type Behaviour = (socket: Socket, seen: Seen, text: string) => void

export const answer = (body: string, extra = ''): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${extra}\r\n${body}`

/** Answers every complete request head. It ignores bodies. */
export const serveHttp =
  (response: string): Behaviour =>
  (socket, seen, text) => {
    const before = seen.text.slice(0, seen.text.length - text.length).split('\r\n\r\n').length
    const after = seen.text.split('\r\n\r\n').length
    for (let i = before; i < after; i++) socket.write(response, 'latin1')
  }

export const echo: Behaviour = (socket, _seen, text) => void socket.write(text, 'latin1')

export class Recorder {
  readonly seen: Seen[] = []
  readonly sockets: Socket[] = []
  greeting = ''
  /** Answers a close with its own. */
  isPolite: boolean = true
  behave: Behaviour = serveHttp(answer('ok'))
  readonly #server: Server

  private constructor(pair: { readonly key: string; readonly cert: string } | undefined) {
    const accept = (socket: Socket): void => this.#accept(socket)
    this.#server =
      pair === undefined
        ? createServer({ allowHalfOpen: true }, accept)
        : createSecure({ ...pair, allowHalfOpen: true }, accept).on('tlsClientError', () => undefined)
  }

  /** With a certificate, it speaks TLS and records what is inside. */
  static start(pair?: { readonly key: string; readonly cert: string }): Promise<Recorder> {
    const recorder = new Recorder(pair)
    return new Promise(resolve => recorder.#server.listen(0, '127.0.0.1', () => resolve(recorder)))
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  /** Everything that arrived, over all connections. */
  get text(): string {
    return this.seen.map(one => one.text).join('')
  }

  get requests(): string[] {
    return this.text.split('\r\n').filter(line => / HTTP\/1\.[01]$/.test(line))
  }

  close(): void {
    this.#server.close()
    for (const socket of this.sockets) socket.destroy()
  }

  #accept(socket: Socket): void {
    const seen: Seen = { text: '', ended: false, broken: false, closed: false }
    this.seen.push(seen)
    this.sockets.push(socket)
    if (this.greeting !== '') socket.write(this.greeting, 'latin1')
    socket.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1')
      seen.text += text
      this.behave(socket, seen, text)
    })
    socket.on('end', () => {
      seen.ended = true
      if (this.isPolite) socket.end()
    })
    socket.on('error', () => {
      seen.broken = true
    })
    socket.on('close', () => {
      seen.closed = true
    })
  }
}

/** A stream of the gateway as a stream of Node, for `node:http2`. Each side waits for the other: nothing piles up. */
import { Duplex } from 'node:stream'
import type { ByteStream } from './byte-stream.ts'

export function asDuplex(stream: ByteStream): Duplex {
  const pull = async (): Promise<void> => {
    if (stream.held.length === 0) await stream.more()
    if (stream.held.length > 0) duplex.push(Buffer.from(stream.consume(stream.held.length)))
    else if (stream.broken) duplex.destroy(new Error('reset'))
    else duplex.push(null)
  }
  const duplex = new Duplex({
    read: () => void pull(),
    write: (chunk: Buffer, _, done) =>
      void stream.write(chunk).then(isOpen => done(isOpen ? null : new Error('closed'))),
    final: done => {
      stream.socket.end()
      done()
    },
    destroy: (error, done) => {
      stream.socket.destroy()
      done(error)
    },
  })
  return duplex.on('error', () => undefined)
}

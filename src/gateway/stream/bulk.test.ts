import { afterEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { listenHere } from '../../../test/gateway/listen.ts'
import { address, port } from '../../../test/gateway/world.ts'
import { connectTcp } from '../dial/tcp-connect.ts'
import { joinStreams } from '../stream/join-streams.ts'
import { ByteStream } from './byte-stream.ts'

const SIZE = 48 * 1_048_576
const LOOPBACK = address('127.0.0.1')
const open: ({ close(): void } | Socket)[] = []

afterEach(() => {
  for (const one of open.splice(0)) 'close' in one ? one.close() : one.destroy()
})

/** A client, a server and a tunnel between them. */
async function tunnel(serve: (socket: Socket) => void) {
  const upstream = await listen(serve)
  const { promise: ended, resolve } = Promise.withResolvers<{ up: ByteStream; why: string }>()
  const middle = listenHere(socket => {
    const dialled = connectTcp(LOOPBACK, port(upstream), () => {
      const up = new ByteStream(dialled)
      void joinStreams(new ByteStream(socket), up).then(why => resolve({ up, why }))
    })
  })
  open.push({ close: () => middle.stop() })
  const client = connect({ port: middle.port, host: '127.0.0.1', allowHalfOpen: true })
  open.push(client)
  return { client, ended }
}

function listen(serve: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => undefined)
    serve(socket)
  })
  open.push(server)
  return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(portOf(server))))
}

function portOf(server: Server): number {
  const at = server.address()
  return typeof at === 'object' && at !== null ? at.port : 0
}

/** No two parts are equal, so that a lost, repeated or moved byte is detected. */
function pattern(): Buffer {
  const words = new Uint32Array(SIZE / 4)
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i, 2_654_435_761)
  return Buffer.from(words.buffer)
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

describe('a tunnel with much traffic', () => {
  test('keeps the order of all bytes for a slow reader, and counts them', async () => {
    const sent = pattern()
    const { client, ended } = await tunnel(socket => socket.end(sent))
    const hash = createHash('sha256')
    let got = 0
    client.on('data', chunk => {
      hash.update(chunk)
      if (Math.floor(got / 4_000_000) !== Math.floor((got + chunk.length) / 4_000_000)) {
        client.pause()
        setTimeout(() => client.resume(), 5)
      }
      got += chunk.length
    })
    await new Promise(resolve => client.once('end', resolve))
    client.end()
    expect({ got, hash: hash.digest('hex') }).toEqual({ got: SIZE, hash: digest(sent) })
    const { up, why } = await ended
    expect({ received: up.received, why }).toEqual({ received: SIZE, why: 'upstream' })
  })

  test('carries both directions at once, and a half close in each', async () => {
    const sent = pattern()
    const hash = createHash('sha256')
    const { client, ended } = await tunnel(socket => {
      socket.on('data', chunk => {
        hash.update(chunk)
        if (!socket.write(chunk)) socket.pause()
      })
      socket.on('drain', () => socket.resume())
      socket.on('end', () => socket.end())
    })
    const back = createHash('sha256')
    let got = 0
    client.on('data', chunk => {
      got += chunk.length
      back.update(chunk)
    })
    client.end(sent)
    await new Promise(resolve => client.once('end', resolve))
    expect(got).toBe(SIZE)
    expect([hash.digest('hex'), back.digest('hex')]).toEqual([digest(sent), digest(sent)])
    const { up } = await ended
    expect([up.sent, up.received]).toEqual([SIZE, SIZE])
  })

  test('passes a reset in the middle on as a reset, not as an end', async () => {
    for (let round = 0; round < 5; round++) {
      const { client, ended } = await tunnel(socket => {
        const more = (): void => {
          while (!socket.destroyed && socket.write(Buffer.alloc(262_144)));
        }
        socket.on('drain', more)
        more()
        setTimeout(() => socket.resetAndDestroy(), 30)
      })
      let failure: unknown
      let isEnd: boolean = false
      client.on('error', error => {
        failure = error
      })
      client.on('end', () => {
        isEnd = true
      })
      client.resume()
      await new Promise(resolve => client.once('close', resolve))
      expect(isEnd).toBe(false)
      expect(failure).toMatchObject({ code: 'ECONNRESET' })
      expect((await ended).why).toBe('upstream')
    }
  })
})

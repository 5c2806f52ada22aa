import { afterEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { connect, createServer as listen, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer, type TLSSocket } from 'node:tls'
import { listenHere } from '../../../test/gateway/listen.ts'
import { selfSigned } from '../../../test/gateway/self-signed.ts'
import { address, port } from '../../../test/gateway/world.ts'
import { until } from '../../../test/until.ts'
import { connectTcp } from '../dial/tcp-connect.ts'
import { ByteStream } from '../stream/byte-stream.ts'
import { startTls } from './start-tls.ts'

const NAME = 'proxy.corp.test'
const pair = selfSigned(NAME)
const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

const portOf = (server: Server): Promise<number> =>
  new Promise(resolve =>
    server.listen(0, '127.0.0.1', () => {
      const at = server.address()
      resolve(typeof at === 'object' && at !== null ? at.port : 0)
    }),
  )

/** A TLS server, and a stream of the gateway to it through a tap that sees the wire. */
async function upstream(serve: (socket: TLSSocket) => void, name = NAME, ca: string = pair.cert) {
  const server = createServer({ ...pair, allowHalfOpen: true }, socket => {
    socket.on('error', () => undefined)
    serve(socket)
  })
  server.on('tlsClientError', () => undefined)
  const securePort = await portOf(server)
  const wire: { socket?: Socket; bytes: Buffer[] } = { bytes: [] }
  const tap = listen({ allowHalfOpen: true }, socket => {
    wire.socket = socket.on('error', () => undefined)
    socket.on('data', chunk => wire.bytes.push(Buffer.from(chunk)))
    const on = connect({ port: securePort, host: '127.0.0.1', allowHalfOpen: true })
    socket.pipe(on.on('error', () => undefined)).pipe(socket)
  })
  const tapPort = await portOf(tap)
  open.push(
    () => server.close(),
    () => tap.close(),
    () => wire.socket?.destroy(),
  )
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const socket = connectTcp(address('127.0.0.1'), port(tapPort), resolve)
  await promise
  const stream = new ByteStream(socket)
  open.push(() => stream.socket.destroy())
  const failure = await startTls(stream, { isServer: false, serverName: name, ca }, 5000)
  return { stream, failure, wire }
}

/** A client of Node, and the gateway's stream that answers it. */
async function accepted() {
  const { promise, resolve } = Promise.withResolvers<ByteStream>()
  const door = listenHere(socket => {
    const stream = new ByteStream(socket)
    void stream.more().then(async () => {
      const read = stream.consume(stream.held.length)
      const failure = await startTls(stream, { isServer: true, read, ...pair }, 5000)
      if (failure === undefined) resolve(stream)
    })
  })
  const client = connectTls({ port: door.port, host: '127.0.0.1', servername: NAME, ca: pair.cert })
  client.on('error', () => undefined)
  open.push(
    () => door.stop(),
    () => client.destroy(),
  )
  const stream = await promise
  open.push(() => stream.socket.destroy())
  return { client, stream }
}

async function readAll(stream: ByteStream, length: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let left = length; left > 0 && (stream.held.length > 0 || (await stream.more(5000))); ) {
    const piece = stream.consume(stream.held.length)
    pieces.push(Buffer.from(piece))
    left -= piece.length
  }
  return Buffer.concat(pieces)
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
const sent = Buffer.alloc(6_000_000, 'in the clear? ')

describe('the gateway as a client of TLS', () => {
  test('carries all bytes both ways, and only inside TLS', async () => {
    const { stream, wire } = await upstream(socket => void socket.pipe(socket))
    void stream.write(sent)
    expect(digest(await readAll(stream, sent.length))).toBe(digest(sent))
    expect(Buffer.concat(wire.bytes).includes('in the clear?')).toBe(false)
  })

  test('refuses a certificate for another name, and one of an unknown authority', async () => {
    const serve = (socket: TLSSocket): void => void socket.resume()
    expect((await upstream(serve, 'other.test')).failure).toBe('certificate')
    expect((await upstream(serve, NAME, selfSigned('else.test').cert)).failure).toBe('certificate')
    expect((await upstream(serve)).failure).toBeUndefined()
  })

  test('a server that does not read stops the writer, and memory stays flat', async () => {
    const { stream } = await upstream(socket => void socket.pause())
    let written = 0
    const piece = Buffer.alloc(262_144, 7)
    const isBlocked = async (): Promise<boolean> => {
      const done = stream.write(piece).then(() => false)
      return Promise.race([done, new Promise<boolean>(resolve => setTimeout(() => resolve(true), 300))])
    }
    while (written < 200_000_000 && !(await isBlocked())) written += piece.length
    expect(written).toBeLessThan(64_000_000)
    expect(stream.socket.unsent).toBeLessThan(2 * piece.length)
  })

  test('a reset is not an end', async () => {
    const { stream, wire } = await upstream(socket => void socket.write('x'))
    await until(() => stream.held.length === 1, 2000)
    wire.socket?.resetAndDestroy()
    await until(() => stream.closed, 2000)
    expect(stream.broken).toBe(true)
  })

  test('a half close is passed on, and the answer to it still arrives', async () => {
    const { stream } = await upstream(socket => {
      let length = 0
      socket.on('data', chunk => {
        length += chunk.length
      })
      socket.on('end', () => socket.end(`${length} bytes`))
    })
    await stream.write('hello')
    stream.socket.end()
    await until(() => stream.ended, 2000)
    expect(stream.held.toString()).toBe('5 bytes')
  })
})

describe('the gateway as a server of TLS', () => {
  test('continues after a ClientHello that it has read, and carries all bytes both ways', async () => {
    const { client, stream } = await accepted()
    client.write(sent)
    const got = await readAll(stream, sent.length)
    expect(digest(got)).toBe(digest(sent))
    const back: Buffer[] = []
    client.on('data', chunk => back.push(Buffer.from(chunk)))
    void stream.write(got)
    await until(() => back.reduce((sum, piece) => sum + piece.length, 0) === sent.length, 5000)
    expect(digest(Buffer.concat(back))).toBe(digest(sent))
  })

  test('a client that is not read stops, and one that does not read stops the gateway', async () => {
    const { client, stream } = await accepted()
    stream.socket.pause()
    let taken = 0
    const push = (): void => {
      while (taken < 100_000_000 && client.write(Buffer.alloc(1_048_576))) taken += 1_048_576
    }
    client.on('drain', push)
    push()
    await new Promise(resolve => setTimeout(resolve, 500))
    expect(taken).toBeLessThan(32_000_000)
    expect(stream.buffered).toBeLessThan(1_048_576)
    client.pause()
    let room = true
    for (let i = 0; i < 400 && room; i++)
      room = await Promise.race([
        stream.write(Buffer.alloc(262_144)),
        new Promise<boolean>(resolve => setTimeout(() => resolve(false), 300)),
      ])
    expect(room).toBe(false)
  })

  test('a client that breaks off in its handshake is reported', async () => {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const door = listenHere(socket => {
      const stream = new ByteStream(socket)
      void stream
        .more()
        .then(() =>
          startTls(stream, { isServer: true, read: stream.consume(stream.held.length), ...pair }, 5000),
        )
        .then(resolve)
    })
    open.push(() => door.stop())
    const client = connect({ port: door.port, host: '127.0.0.1' })
    client.on('error', () => undefined).write(Buffer.from('16030100050100000100', 'hex'))
    setTimeout(() => client.resetAndDestroy(), 100)
    expect(await promise).toBe('incomplete')
  })
})

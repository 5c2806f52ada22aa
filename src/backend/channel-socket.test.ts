import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createServer, type Server, type Socket } from 'node:net'
import { type RunningDaemon, startDaemon } from '../../test/exec-daemon/exec-daemon.ts'
import { takenOver } from '../../test/exec-daemon/taken-over.ts'
import { until } from '../../test/until.ts'
import { ByteStream } from '../gateway/stream/byte-stream.ts'
import type { Report } from '../protocol/exec-messages.ts'
import { WINDOW } from '../protocol/window.ts'
import type { ChannelSocket } from './channel-socket.ts'

const started: Report = { kind: 'started', channel: 1 }
const bytes = (length: number): Report => ({ kind: 'stdout', channel: 1, bytes: new Uint8Array(length) })

describe('a connection through an exec daemon that was taken over ends the link when it', () => {
  const crimes: Record<string, Report[]> = {
    'sends before it is connected': [bytes(1)],
    'sends after its end': [started, { kind: 'stdout-end', channel: 1 }, bytes(1)],
    'ends its output twice': [started, ...Array<Report>(2).fill({ kind: 'stdout-end', channel: 1 })],
    'sends more than there is room for': [started, ...Array<Report>(5).fill(bytes(65_536))],
    'opens a connection that was not ordered': [{ kind: 'started', channel: 2 }],
  }
  for (const [crime, reports] of Object.entries(crimes))
    test(crime, async () => {
      const { link, say } = await takenOver()
      const socket = link.connect({ port: 80 })
      say(...reports)
      await link.closed
      if (!crime.includes('room')) await socket.ended
      await expect(link.connect({ port: 80 }).opened).rejects.toThrow(
        'no server of the sandbox listens there',
      )
    })
})

test('a connection that is not read holds one window of bytes, and closes without an answer', async () => {
  const { link, say, heard } = await takenOver()
  const socket = link.connect({ port: 80 })
  say(started, bytes(60_000), bytes(60_000), bytes(60_000), bytes(60_000))
  await socket.opened
  const stream = new ByteStream(socket)
  await until(() => stream.held.length > 0)
  await Bun.sleep(20)
  expect(heard.filter(({ kind }) => kind === 'window').length).toBeLessThan(4)
  expect(stream.held.length).toBeLessThanOrEqual(WINDOW)
  stream.reset()
  await until(() => stream.closed && heard.some(({ kind }) => kind === 'end'))
})

test('an exec daemon that ends no connection gets no more than a bounded number', async () => {
  const { link, heard } = await takenOver()
  for (let n = 0; n < 3000; n++) link.connect({ port: 80 }).destroy()
  const dialled = () => heard.filter(({ kind }) => kind === 'connect').length
  await until(() => dialled() === 1024)
  await expect(link.connect({ port: 80 }).opened).rejects.toThrow()
  expect(dialled()).toBe(1024)
})

describe('a real exec daemon', () => {
  let daemon: RunningDaemon
  let server: Server
  const sockets: Socket[] = []
  const port = (): number => (server.address() as { port: number }).port
  beforeAll(async () => {
    daemon = startDaemon()
    server = createServer({ allowHalfOpen: true }, socket => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.on('data', data => void socket.write(data))
      socket.on('end', () => socket.end(' bye'))
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    await daemon.link.ready
  })
  afterAll(async () => {
    server.close()
    await daemon.end()
  })

  const dial = async (): Promise<{ socket: ChannelSocket; stream: ByteStream }> => {
    const socket = daemon.link.connect({ port: port() })
    await socket.opened
    return { socket, stream: new ByteStream(socket) }
  }

  test('passes megabytes both ways, and half closes', async () => {
    const { stream } = await dial()
    const sent = new Uint8Array(3_000_000).map((_, i) => i * 7)
    const writing = (async () => {
      for (let at = 0; at < sent.length; at += 100_000) await stream.write(sent.subarray(at, at + 100_000))
      stream.socket.end()
    })()
    const got: Buffer[] = []
    while (await stream.more(5000)) got.push(Buffer.from(stream.consume(stream.held.length)))
    await writing
    got.push(stream.consume(stream.held.length))
    expect(Buffer.concat(got).equals(Buffer.concat([sent, Buffer.from(' bye')]))).toBe(true)
    await until(() => stream.closed)
    expect(stream.broken).toBe(false)
  })

  test('says that no server listens', async () => {
    const other = createServer()
    await new Promise<void>(done => other.listen(0, '127.0.0.1', done))
    const free = (other.address() as { port: number }).port
    await new Promise<void>(done => other.close(() => done()))
    await expect(daemon.link.connect({ port: free }).opened).rejects.toThrow(
      'no server of the sandbox listens',
    )
  })

  test('bytes that were sent before a close still arrive', async () => {
    const received: Buffer[] = []
    const slow = createServer({ allowHalfOpen: true }, socket => {
      socket.on('error', () => undefined)
      socket.on('data', (data: Buffer) => void received.push(data))
      socket.pause()
      setTimeout(() => socket.resume(), 300)
    })
    await new Promise<void>(done => slow.listen(0, '127.0.0.1', done))
    const socket = daemon.link.connect({ port: (slow.address() as { port: number }).port })
    await socket.opened
    const stream = new ByteStream(socket)
    await stream.write('last words')
    socket.end()
    await Bun.sleep(50)
    socket.destroy()
    await until(() => Buffer.concat(received).toString() === 'last words')
    slow.close()
  })

  test('a reset on one side ends the other', async () => {
    const first = await dial()
    await first.stream.write('x')
    await first.stream.more(5000)
    sockets.at(-1)?.resetAndDestroy()
    await until(() => first.stream.closed)
    expect(first.stream.broken).toBe(true)
    const second = await dial()
    await second.stream.write('x')
    await second.stream.more(5000)
    const closed = new Promise(resolve => sockets.at(-1)?.once('close', resolve))
    second.stream.reset()
    await Promise.all([closed, second.socket.ended])
  })
})

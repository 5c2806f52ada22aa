import { afterEach, describe, expect, test } from 'bun:test'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { listenHere } from '../../../test/gateway/listen.ts'
import type { AuditEventInput } from '../../audit/event.ts'
import { NameTable } from './names.ts'
import { DnsStub } from './stub.ts'

function query(name: string, id = 7): Buffer {
  const labels = name.split('.').map(l => Buffer.concat([Buffer.of(l.length), Buffer.from(l)]))
  const header = Buffer.of(id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
  return Buffer.concat([header, ...labels, Buffer.of(0, 0, 1, 0, 1)])
}
const framed = (...queries: Buffer[]): Buffer =>
  Buffer.concat(queries.flatMap(q => [Buffer.of(q.length >> 8, q.length & 255), q]))

const open: { close(): unknown }[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.close()
})

function stub(limits = {}): { dns: DnsStub; records: AuditEventInput[] } {
  const records: AuditEventInput[] = []
  const dns = new DnsStub({ names: new NameTable(), audit: { record: e => void records.push(e) }, limits })
  open.push({ close: () => dns.close() })
  return { dns, records }
}

async function udp(): Promise<UdpSocket> {
  const socket = createSocket('udp4')
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  return socket
}

async function udpStub(limits = {}) {
  const served = await udp()
  const made = stub(limits)
  made.dns.serveUdp(served)
  const client = await udp()
  open.push(client, served)
  const answers: Buffer[] = []
  client.on('message', bytes => answers.push(bytes))
  const ask = (bytes: Buffer): void => client.send(bytes, served.address().port, '127.0.0.1')
  const until = async (count: number): Promise<void> => {
    for (let i = 0; i < 200 && answers.length < count; i++) await Bun.sleep(5)
  }
  return { ...made, served, answers, ask, until }
}

async function tcpStub(limits = {}) {
  const made = stub(limits)
  const server = listenHere(socket => made.dns.serveTcp(socket))
  open.push({ close: () => server.stop() })
  const dial = async () => {
    const chunks: Buffer[] = []
    const socket: Socket = connect(server.port, '127.0.0.1')
    open.push({ close: () => socket.destroy() })
    const closed = new Promise<void>(resolve => void socket.on('close', () => resolve()))
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => chunks.push(bytes))
    await new Promise<void>(resolve => void socket.on('connect', () => resolve()))
    return { socket, read: () => Buffer.concat(chunks), closed }
  }
  return { ...made, dial }
}

const REPLY = query('a.test').length + 16

describe('over UDP', () => {
  test('a query is answered; a malformed one is not, and is recorded once', async () => {
    const { ask, answers, until, records, dns } = await udpStub()
    for (let i = 0; i < 20; i++) ask(Buffer.alloc(40, 0xff))
    ask(query('allowed.test', 99))
    await until(1)
    expect(answers.length).toBe(1)
    expect(answers[0]?.readUInt16BE(0)).toBe(99)
    expect(records).toEqual([{ kind: 'dns-refused', reason: 'malformed', count: 1, raw: undefined }])
    dns.close()
    expect(records[1]).toMatchObject({ reason: 'malformed', count: 19 })
  })

  test('clients that close before their reply do not cost others theirs', async () => {
    const { ask, answers, until, served } = await udpStub()
    for (let i = 0; i < 50; i++) {
      const rude = await udp()
      await new Promise<void>(resolve =>
        rude.send(query(`rude${i}.test`), served.address().port, '127.0.0.1', () => {
          rude.close()
          resolve()
        }),
      )
      ask(query('polite.test', i))
      await until(i + 1)
    }
    expect(answers.length).toBe(50)
  })

  test('beyond the rate queries are dropped, and answered again later', async () => {
    const { ask, answers, until, records } = await udpStub({ queriesPerSecond: 50 })
    for (let i = 0; i < 200; i++) ask(query('allowed.test', i))
    await until(200)
    expect(answers.length).toBeGreaterThanOrEqual(50)
    expect(answers.length).toBeLessThan(150)
    expect(records[0]).toMatchObject({ kind: 'dns-refused', reason: 'rate' })
    const before = answers.length
    await Bun.sleep(100)
    ask(query('allowed.test', 1000))
    await until(before + 1)
    expect(answers.at(-1)?.readUInt16BE(0)).toBe(1000)
  })

  test('an audit that cannot be written does not stop the answers', async () => {
    const served = await udp()
    const audit = {
      record(): void {
        throw new Error('full')
      },
    }
    const dns = new DnsStub({ names: new NameTable(), audit })
    open.push({ close: () => dns.close() })
    dns.serveUdp(served)
    const client = await udp()
    open.push(client, served)
    const answered = new Promise<Buffer>(resolve => client.once('message', resolve))
    client.send(Buffer.from('x'), served.address().port, '127.0.0.1')
    client.send(query('a.test'), served.address().port, '127.0.0.1')
    expect((await answered).length).toBe(REPLY)
  })
})

describe('over TCP', () => {
  test('several queries on one connection are answered in order, however they are cut', async () => {
    const { dial } = await tcpStub()
    const { socket, read } = await dial()
    const bytes = framed(query('a.test', 1), query('b.test', 2), query('a.test', 3))
    for (const byte of bytes) {
      socket.write(Buffer.of(byte))
      await Bun.sleep(0)
    }
    for (let i = 0; i < 200 && read().length < 3 * (REPLY + 2); i++) await Bun.sleep(5)
    const got = read()
    expect(got.length).toBe(3 * (REPLY + 2))
    expect([0, 1, 2].map(i => got.readUInt16BE(i * (REPLY + 2) + 2))).toEqual([1, 2, 3])
    expect(got.subarray(REPLY - 2, REPLY + 2)).toEqual(got.subarray(-4))
  })

  test('a malformed query, and a length that no query has, end the connection', async () => {
    const { dial, records } = await tcpStub()
    for (const bytes of [
      framed(Buffer.alloc(20, 0xff)),
      Buffer.of(0xff, 0xff),
      Buffer.of(0, 0),
      framed(Buffer.of(1)),
    ]) {
      const { socket, read, closed } = await dial()
      socket.write(bytes)
      await closed
      expect(read().length).toBe(0)
    }
    expect(records[0]).toMatchObject({ reason: 'malformed' })
  })

  test('connections beyond the limit are closed at once, and later ones succeed', async () => {
    const { dial, records } = await tcpStub({ tcpConnections: 2 })
    const first = await dial()
    await dial()
    await Bun.sleep(20)
    const third = await dial()
    await third.closed
    expect(records[0]).toMatchObject({ reason: 'rate' })
    first.socket.destroy()
    await Bun.sleep(50)
    const fourth = await dial()
    fourth.socket.write(framed(query('a.test')))
    for (let i = 0; i < 100 && fourth.read().length === 0; i++) await Bun.sleep(5)
    expect(fourth.read().length).toBe(REPLY + 2)
  })

  test('a connection is good for a thousand queries, then it ends', async () => {
    const { dial } = await tcpStub()
    const { socket, read, closed } = await dial()
    for (let i = 0; i < 1200; i++) socket.write(framed(query('a.test', i)))
    await closed
    expect(read().length).toBeLessThanOrEqual(1000 * (REPLY + 2))
    expect(read().length).toBeGreaterThan(0)
  })
})

import { afterEach, describe, expect, test } from 'bun:test'
import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import { connect as connectTls } from 'node:tls'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import { eventually } from '../../../test/gateway/client.ts'
import { host, indexOf, World, type WorldOptions } from '../../../test/gateway/world.ts'
import { Vault } from '../secrets/vault.ts'

const authority = newAuthority('inside')
const outside = newAuthority('outside')
const REAL = 'tok_REALREALREALREAL0001'
const FAKE = 'tok_fakefakefakefake9999'
const open: (() => void)[] = []
let world: World
/** Bytes that the server could write. */
let flooded = 0
afterEach(async () => {
  for (const close of open.splice(0)) close()
  await world.close()
})

interface Asked {
  readonly headers: IncomingHttpHeaders
  body: string
  trailers: IncomingHttpHeaders
}

/** A server that speaks HTTP/2 only: it repeats the request's token and body, with trailers as gRPC has them. */
async function start(options: WorldOptions = {}): Promise<Asked[]> {
  const secrets = [{ name: 'TOKEN', to: ['allowed.test:443'] }]
  const vault = new Vault(indexOf(secrets), [{ name: 'TOKEN', value: REAL, placeholder: FAKE }])
  const allow = ['POST allowed.test/pkg.Service/*']
  world = await World.start({ allow, authority, outside, vault, secrets, ...options })
  const asked: Asked[] = []
  const { key, cert } = outside.leafFor(host('allowed.test'))
  const server = createSecureServer({ key, cert })
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const one: Asked = { headers, body: '', trailers: {} }
    asked.push(one)
    stream.on('error', () => undefined)
    stream.on('trailers', found => {
      one.trailers = found
    })
    if (headers[':path'] === '/pkg.Service/Reset') return stream.close(8)
    if (headers['expect'] !== undefined) stream.additionalHeaders({ ':status': 100 })
    const { 'x-answer': extra, 'x-trailer': trailer = 'x-token' } = headers
    const more = extra === undefined ? {} : (JSON.parse(String(extra)) as OutgoingHttpHeaders)
    const echoed = { 'x-echo': headers['authorization'] ?? '', 'x-pen-denied': 'by-server', ...more }
    stream.respond({ ':status': 200, ...echoed }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', [String(trailer)]: REAL }))
    if (headers[':path'] === '/pkg.Service/Ignore') return
    if (headers[':path'] === '/pkg.Service/Flood') {
      const more = (): void => {
        do flooded += 65_536
        while (flooded < 300_000_000 && stream.write(Buffer.alloc(65_536)))
      }
      stream.on('drain', more)
      more()
      return
    }
    stream.on('data', (chunk: Buffer) => {
      one.body += chunk.toString()
      stream.write(chunk)
    })
    stream.on('end', () => stream.end(`token ${REAL}`))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  open.push(() => server.close())
  const at = server.address()
  // The world dials the recorder's port.
  world.up.close()
  Object.defineProperty(world.up, 'port', { value: typeof at === 'object' && at !== null ? at.port : 0 })
  return asked
}

async function dial(): Promise<ClientHttp2Session> {
  const { socket } = await world.byName('allowed.test', 443)
  socket.removeAllListeners('data')
  const secure = connectTls({
    socket,
    servername: 'allowed.test',
    ca: authority.certificate,
    ALPNProtocols: ['h2'],
  })
  await new Promise<void>((resolve, reject) => {
    secure.once('secureConnect', () => resolve())
    secure.once('error', reject)
  })
  const session = connect('https://allowed.test', { createConnection: () => secure })
  session.on('error', () => undefined)
  open.push(() => session.destroy())
  return session
}

interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
  trailers: IncomingHttpHeaders
}

function call(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body = 'hello ',
  trailers?: Record<string, string>,
): Promise<Answer> {
  const waitForTrailers = trailers !== undefined
  const stream = session.request({ ':method': 'POST', te: 'trailers', ...headers }, { waitForTrailers })
  stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}))
  const answer: Answer = { status: 0, headers: {}, body: '', trailers: {} }
  stream.on('response', found => {
    answer.status = found[':status'] ?? 0
    answer.headers = found
  })
  stream.on('trailers', found => {
    answer.trailers = found
  })
  stream.on('data', (chunk: Buffer) => {
    answer.body += chunk.toString()
  })
  stream.on('error', () => undefined)
  stream.end(body)
  return new Promise(resolve => stream.on('close', () => resolve(answer)))
}

describe('a program that speaks HTTP/2 only', () => {
  test('reaches a server with its secret, and gets the answer and trailers without it', async () => {
    const asked = await start()
    const session = await dial()
    const answer = await call(session, { ':path': '/pkg.Service/Get', authorization: `Bearer ${FAKE}` })
    expect(asked).toHaveLength(1)
    expect(asked[0]?.headers['authorization']).toBe(`Bearer ${REAL}`)
    expect(asked[0]?.headers['te']).toBe('trailers')
    expect(asked[0]?.body).toBe('hello ')
    expect(Object.keys(answer.headers)).not.toContain('x-pen-denied')
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'x-echo': `Bearer ${FAKE}` },
      body: `hello token ${FAKE}`,
      trailers: { 'grpc-status': '0', 'x-token': FAKE },
    })
    expect(world.audit).toMatchObject([
      { kind: 'connection-allowed' },
      { kind: 'request-allowed', method: 'POST', path: '/pkg.Service/Get', secrets: ['TOKEN'] },
      { kind: 'request-answered', status: 200 },
    ])
  })

  test('gets a verdict for each stream, and a refusal does not end the others', async () => {
    const asked = await start()
    const session = await dial()
    const refused = await call(session, { ':path': '/other.Service/Delete' })
    expect(refused.status).toBe(403)
    expect(refused.headers['x-pen-denied']).toBe('request-not-allowed')
    expect(refused.body).toContain("pen allow 'POST allowed.test:443/other.Service/Delete'")
    expect((await call(session, { ':path': '/pkg.Service/Get' })).status).toBe(200)
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        call(session, { ':path': `/pkg.Service/M${i}` }, 'x'.repeat(20_000)),
      ),
    )
    expect(all.every(({ status, body }) => status === 200 && body.length > 20_000)).toBe(true)
    expect(asked).toHaveLength(51)
  })

  for (const [what, headers] of Object.entries({
    'another authority': { ':authority': 'evil.test', ':path': '/pkg.Service/Get' },
    'a Host beside the authority': {
      host: 'evil.test',
      ':authority': 'allowed.test',
      ':path': '/pkg.Service/Get',
    },
    'a dot segment': { ':path': '/pkg.Service/%2e%2e/x' },
    'another method': { ':method': 'DELETE', ':path': '/pkg.Service/Get' },
    'a placeholder in another field': { ':path': '/pkg.Service/Get', 'x-other': FAKE },
  }))
    test(`${what} is refused, and no request leaves`, async () => {
      const asked = await start()
      const session = await dial()
      const answer = await call(session, headers)
      expect(answer.status === 0 || answer.status >= 400).toBe(true)
      expect(asked).toEqual([])
    })

  for (const [what, more] of Object.entries({
    'compressed messages': { 'grpc-encoding': 'gzip' },
    'a compressed body': { 'content-encoding': 'br' },
    'a part': { ':status': 206, 'content-range': 'bytes 0-5/9' },
    'the secret as the name of a field': { [REAL.toLowerCase()]: '1' },
  }))
    test(`an answer with ${what} is refused, and one with identity passes`, async () => {
      await start()
      const session = await dial()
      const ask = (extra: object) =>
        call(session, { ':path': '/pkg.Service/Get', 'x-answer': JSON.stringify(extra) })
      const refused = await ask(more)
      expect([refused.status, refused.headers['x-pen-error'], refused.body]).toEqual([502, 'bad-answer', ''])
      expect(Object.keys(refused.headers)).not.toContain(REAL.toLowerCase())
      expect((await ask({ 'grpc-encoding': 'identity' })).status).toBe(200)
    })

  test('the secret as the name of a trailer never comes', async () => {
    await start()
    const session = await dial()
    const answer = await call(session, { ':path': '/pkg.Service/Get', 'x-trailer': REAL.toLowerCase() })
    expect(answer.trailers).toEqual({})
  })

  test('sends the trailers that it announced, without those that mean something in a head', async () => {
    const asked = await start()
    const session = await dial()
    const head = { ':path': '/pkg.Service/Get', trailer: 'x-sum' }
    const sent = { 'x-sum': '1', cookie: 'a=b', 'x-original-url': '/x' }
    expect((await call(session, head, 'hello ', sent)).status).toBe(200)
    expect(Object.entries(asked[0]?.trailers ?? {})).toEqual([['x-sum', '1']])
    const refused = await call(session, head, 'hello ', { 'x-sum': FAKE })
    expect([refused.status, refused.headers['x-pen-denied']]).toEqual([400, 'bad-request'])
    expect(Object.entries(asked[1]?.trailers ?? {})).toEqual([])
    expect(world.kinds()).toContain('connection-denied bad-request')
    expect((await call(session, { ':path': '/pkg.Service/Get' }, 'x', { 'x-sum': '1' })).status).toBe(200)
  })

  test('a body that waits for 100-continue goes out when the server asks for it', async () => {
    const asked = await start()
    const session = await dial()
    const head = { ':method': 'POST', ':path': '/pkg.Service/Put', expect: '100-continue' }
    const stream = session.request(head)
    let body = ''
    stream.on('continue', () => stream.end('waited '))
    stream.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    await new Promise(resolve => stream.on('close', resolve))
    expect([asked[0]?.body, body]).toEqual(['waited ', `waited token ${FAKE}`])
  })

  test('streams both ways while the request is open', async () => {
    const asked = await start()
    const session = await dial()
    const stream = session.request({ ':method': 'POST', ':path': '/pkg.Service/Chat' })
    let heard = ''
    stream.on('data', (chunk: Buffer) => {
      heard += chunk.toString()
    })
    stream.write('one')
    await eventually(() => heard === 'one')
    stream.write('two')
    await eventually(() => heard === 'onetwo')
    expect(heard).toBe('onetwo')
    expect(asked[0]?.body).toBe('onetwo')
    stream.end()
  })

  test('an answer that is not read stops the server, and an upload that is not read stops the program', async () => {
    await start()
    const session = await dial()
    const flood = session.request({ ':method': 'POST', ':path': '/pkg.Service/Flood' })
    flood.on('error', () => undefined).pause()
    flood.end()
    const upload = session.request({ ':method': 'POST', ':path': '/pkg.Service/Ignore' })
    upload.on('error', () => undefined)
    let taken = 0
    const push = (): void => {
      while (taken < 200_000_000 && upload.write(Buffer.alloc(262_144))) taken += 262_144
    }
    upload.on('drain', push)
    push()
    await new Promise(resolve => setTimeout(resolve, 1000))
    expect(flooded).toBeGreaterThan(0)
    expect(flooded).toBeLessThan(20_000_000)
    expect(taken).toBeLessThan(20_000_000)
    flood.destroy()
    upload.destroy()
  })

  test('goes on after uploads that were refused or not read', async () => {
    await start()
    const session = await dial()
    const large = 'x'.repeat(200_000)
    for (let i = 0; i < 8; i++) {
      const path = i % 2 === 0 ? '/other.Service/Delete' : '/pkg.Service/Reset'
      await call(session, { ':path': path }, large)
    }
    expect((await call(session, { ':path': '/pkg.Service/Get' }, large)).body).toHaveLength(
      large.length + 6 + FAKE.length,
    )
  })

  test('hears at once that the server ended a call, or the connection, and the gateway goes on', async () => {
    await start()
    const session = await dial()
    for (const _ of [1, 2])
      expect((await call(session, { ':path': '/pkg.Service/Reset' })).headers).toEqual({})
    expect((await call(session, { ':path': '/pkg.Service/Get' })).status).toBe(200)
    // The program ends calls of its own while the answer and its trailers come.
    const ends = Array.from({ length: 200 }, async (_, i) => {
      const stream = session.request({ ':method': 'POST', ':path': '/pkg.Service/Get', trailer: 'x' })
      stream.on('error', () => undefined).end('x')
      await Bun.sleep(i % 7)
      stream.close(8)
    })
    await Promise.all(ends)
    expect((await call(session, { ':path': '/pkg.Service/Get' })).status).toBe(200)
  })

  test('without any HTTP/2 at the server, it is reported', async () => {
    await start()
    const plain = await world.recorder('198.51.100.10', outside.leafFor(host('allowed.test')))
    const session = await dial().catch(() => undefined)
    if (session !== undefined) await call(session, { ':path': '/pkg.Service/Get' })
    expect(plain.requests).toEqual([])
  })
})

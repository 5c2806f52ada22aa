/** Known attacks on opened connections with a secret. Each stands beside an allowed twin on the same gateway. */
import { afterEach, describe, expect, test } from 'bun:test'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import type { Client } from '../../../test/gateway/client.ts'
import { answer } from '../../../test/gateway/recorder.ts'
import { indexOf, World } from '../../../test/gateway/world.ts'
import { Vault } from './vault.ts'

const authority = newAuthority('inside')
const outside = newAuthority('outside')
const REAL = 'tok_REALREALREALREAL0001'
const FAKE = 'tok_fakefakefakefake9999'
let world: World
afterEach(() => world.close())

async function start(): Promise<Client> {
  const secrets = [{ name: 'KEY', to: ['allowed.test:443/v1/**'], in: ['header:x-api-key'] }]
  world = await World.start({
    allow: ['GET,POST allowed.test/v1/**', 'evil.test:80'],
    authority,
    outside,
    vault: new Vault(indexOf(secrets), [{ name: 'KEY', value: REAL, placeholder: FAKE }]),
    secrets,
  })
  return await connect()
}

async function connect(): Promise<Client> {
  const client = await world.byTls('allowed.test', 443)
  if (client === undefined) throw new Error('no handshake')
  return client
}

const KEY = `X-Api-Key: ${FAKE}\r\n`
const head = (line: string, more = KEY): string => `${line} HTTP/1.1\r\nHost: allowed.test\r\n${more}\r\n`
const TWIN = head('GET /v1/x')

/** The twin works on a connection of its own, also after the attack. */
async function expectTwin(): Promise<void> {
  const before = world.up.requests.length
  const twin = await connect()
  await twin.send(TWIN).heard('ok')
  expect(world.up.requests).toHaveLength(before + 1)
  expect(world.up.text).toContain(`X-Api-Key: ${REAL}\r\n`)
}

describe('no request leaves', () => {
  const attacks: Readonly<Record<string, string>> = {
    'with two lengths': head('POST /v1/x', `${KEY}Content-Length: 5\r\nContent-Length: 6\r\n`),
    'with a length and chunks': head(
      'POST /v1/x',
      `${KEY}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`,
    ),
    'with a coding that only some servers read': head('POST /v1/x', `${KEY}Transfer-Encoding: xchunked\r\n`),
    'with a space before the colon': head('GET /v1/x', `X-Api-Key : ${FAKE}\r\n`),
    'with a folded line': head('GET /v1/x', `X-Api-Key:\r\n ${FAKE}\r\n`),
    'with a bare CR in a value': head('GET /v1/x', `X-A: b\rX-Api-Key: ${FAKE}\r\n`),
    'with a bare LF in a value': head('GET /v1/x', `X-A: b\nX-Api-Key: ${FAKE}\r\n`),
    'with a NUL in a value': head('GET /v1/x', `X-A: b\0\r\n${KEY}`),
    'of HTTP/2 on a connection that agreed on HTTP/1.1': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'with a target in absolute form': head('GET https://allowed.test/v1/x'),
    'with a Host of another port': `GET /v1/x HTTP/1.1\r\nHost: allowed.test:8443\r\n${KEY}\r\n`,
    'with two Hosts': head('GET /v1/x', `Host: evil.test\r\n${KEY}`),
    'with a dot segment behind an encoded slash': head('GET /v1/..%2fv2'),
    'with a backslash': head('GET /v1\\..\\v2'),
    'with dots and parameters': head('GET /v1/..;/v2'),
    'with a dot segment that is encoded twice': head('GET /v1/%252e%252e/v2'),
    'to a path in other case': head('GET /V1/x'),
    'to a path that a field names': head('GET /v1/x', `${KEY}X-Original-URL: /v2\r\n`),
    'by TRACE': head('TRACE /v1/x'),
    'by CONNECT': head('CONNECT evil.test:443'),
    'with the placeholder in another field': head('GET /v1/x', `Cookie: ${FAKE}\r\n`),
    'with the placeholder in the path': head(`GET /v1/${FAKE}`, ''),
  }
  for (const [what, bytes] of Object.entries(attacks))
    test(`${what}, and its twin does`, async () => {
      const client = await start()
      await client.send(bytes).over()
      expect(client.text).toMatch(/^HTTP\/1\.1 [45]\d\d /)
      expect(world.up.text + world.evil.text).toBe('')
      await expectTwin()
    })
})

describe('an opened connection', () => {
  test('judges each of several pipelined requests, and stops at the first that is refused', async () => {
    const client = await start()
    await client.send(`${TWIN}${head('GET /v2/x')}${TWIN}`).over()
    expect(world.up.requests).toEqual(['GET /v1/x HTTP/1.1'])
    await expectTwin()
  })

  test('reads no request from a body', async () => {
    const client = await start()
    const body = head('GET /v2/x')
    client.send(`${head('POST /v1/x', `${KEY}Content-Length: ${body.length}\r\n`)}${body}${TWIN}`)
    await client.until(() => world.up.text.split('GET /v1/x').length > 1)
    const [post = ''] = world.up.text.split('GET /v1/x')
    expect(post).toContain(body)
    // The body is sent as it is: a placeholder in it is worthless.
    expect(post.split('\r\n\r\n').slice(1).join()).not.toContain(REAL)
  })

  test('carries no request after a WebSocket that the server declined', async () => {
    const client = await start()
    const ask = head('GET /v1/ws', `${KEY}Upgrade: websocket\r\nConnection: Upgrade\r\n`)
    await client.send(ask).heard('ok')
    await client.send(head('GET /v2/x')).over()
    expect(world.up.requests).toEqual(['GET /v1/ws HTTP/1.1'])
  })

  test('does not follow a redirect, and the next request is judged for its own host', async () => {
    const client = await start()
    world.up.behave = socket =>
      void socket.write('HTTP/1.1 302 F\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n')
    await client.send(TWIN).heard('302')
    const next = await world.byName('evil.test', 80)
    await next.send(`GET / HTTP/1.1\r\nHost: evil.test\r\n${KEY}\r\n`).over()
    expect(next.text).toContain('x-pen-denied: secret-elsewhere')
    expect(world.evil.text).toBe('')
  })

  test('through CONNECT has the same rules, and the same secret', async () => {
    await start()
    const proxy = await world.byProxy()
    await proxy.send('CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n').heard('200')
    const { socket } = proxy
    socket.removeAllListeners('data')
    const { connect: connectTls } = await import('node:tls')
    const secure = connectTls({ socket, servername: 'allowed.test', ca: authority.certificate })
    let text = ''
    secure.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    secure.on('error', () => undefined)
    secure.write(TWIN)
    await proxy.until(() => text.includes('ok'))
    expect(world.up.text).toContain(REAL)
    secure.write(head('GET /v2/x'))
    await proxy.until(() => text.includes('403'))
    expect(world.up.requests).toEqual(['GET /v1/x HTTP/1.1'])
  })

  test('with the placeholder in a trailer never becomes complete, and its twin does', async () => {
    const client = await start()
    world.up.behave = (socket, seen) => {
      if (seen.text.endsWith('\r\n\r\n') && !seen.text.endsWith('chunked\r\n\r\n')) socket.write(answer('ok'))
    }
    const body = (trailer: string): string =>
      `${head('POST /v1/x', `${KEY}Transfer-Encoding: chunked\r\n`)}2\r\nhi\r\n0\r\n${trailer}\r\n\r\n`
    for (const trailer of [`X-Sum: ${FAKE}`, `X-Sum: a%${FAKE}`, `X-${FAKE}: a`, `Cookie: ${FAKE}`]) {
      const attacker = await connect()
      await attacker.send(body(trailer)).over()
      expect(attacker.text).toContain('x-pen-denied: bad-request')
    }
    expect(world.up.text).not.toContain('0\r\n')
    expect(world.kinds()).toContain('connection-denied bad-request')
    await client.send(body('X-Sum: 1')).heard('ok')
    expect(world.up.text).toEndWith('0\r\nX-Sum: 1\r\n\r\n')
  })

  test('gives back no value in the name of a trailer: the answer is cut', async () => {
    const client = await start()
    world.up.behave = socket =>
      void socket.write(
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${REAL.toUpperCase()}: x\r\n\r\n`,
      )
    await client.send(TWIN).over()
    expect(client.text).not.toMatch(/REAL|\r\n0\r\n/)
  })

  test('whose server name is another one is refused before any byte', async () => {
    await start()
    const other = await world.byTls('allowed.test', 443, { servername: 'evil.test' })
    await other?.send(TWIN).over()
    expect(other?.text).toContain('x-pen-denied: sni-mismatch')
    expect(world.kinds()).toContain('connection-denied sni-mismatch')
    expect(world.up.text).toBe('')
    await expectTwin()
  })

  test('gives back no value in a status line, a trailer or an informational answer', async () => {
    const client = await start()
    world.up.behave = socket =>
      void socket.end(
        `HTTP/1.1 103 E\r\nLink: ${REAL}\r\n\r\nHTTP/1.1 200 ${REAL}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: ${REAL}\r\n\r\n`,
      )
    await client.send(TWIN).heard('X-T: ')
    await client.heard('\r\n\r\n')
    expect(client.text).toContain(`Link: ${FAKE}`)
    expect(client.text).toEndWith(`0\r\nX-T: ${FAKE}\r\n\r\n`)
    expect(client.text).not.toContain('REAL')
    world.up.behave = socket => void socket.write(answer('ok'))
    await expectTwin()
  })
})

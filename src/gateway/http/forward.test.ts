import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { eventually } from '../../../test/gateway/client.ts'
import { answer, echo } from '../../../test/gateway/recorder.ts'
import { World } from '../../../test/gateway/world.ts'

const GET = 'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n'
let world: World
beforeEach(async () => {
  world = await World.start({
    allow: ['allowed.test:80', 'allowed.test:8080', '203.0.113.7:80', 'host.pen.internal:8000'],
    limits: { headMs: 300 },
  })
})
afterEach(() => world.close())

const responding = (response: string) => (socket: { write(text: string, encoding: 'latin1'): unknown }) =>
  void socket.write(response, 'latin1')

describe('P9 every request of a connection must be for the dialled name', () => {
  const refused: Readonly<Record<string, string>> = {
    'the Host of another name': 'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n',
    'the Host of another port': 'GET / HTTP/1.1\r\nHost: allowed.test:81\r\n\r\n',
    'the target of another name': 'GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
    'the target of another port': 'GET http://allowed.test:8080/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
    'an address as Host': 'GET / HTTP/1.1\r\nHost: 198.51.100.10\r\n\r\n',
    'no Host': 'GET / HTTP/1.1\r\nX: y\r\n\r\n',
    'an empty Host': 'GET / HTTP/1.1\r\nHost: \r\n\r\n',
    'white space in front': ' GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n',
    'LF in front': '\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n',
    'an unknown method': 'FOO / HTTP/1.1\r\nHost: evil.test\r\n\r\n',
    'a tab as separator': 'GET\t/\tHTTP/1.1\r\nHost: evil.test\r\n\r\n',
    'lines that end in LF': 'GET / HTTP/1.1\nHost: evil.test\n\n',
    'HTTP/0.9': 'GET /\r\n',
    'HTTP/2 without TLS': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  }
  for (const [what, bytes] of Object.entries(refused))
    test(`${what}: refused, one record, nothing upstream`, async () => {
      const client = await world.byName('allowed.test', 80)
      await client.send(bytes).over()
      expect(client.text).toMatch(/^HTTP\/1\.1 (?:4|505)/)
      expect(world.up.seen).toEqual([])
      expect(world.audit.length).toBe(1)
      expect(world.audit[0]).toMatchObject({ kind: 'connection-denied', name: 'allowed.test' })
    })

  test('also when it arrives slowly, or after the upstream was dialled', async () => {
    const client = await world.byName('allowed.test', 80)
    await client.until(() => world.up.seen.length === 1)
    for (const part of ['GE', 'T / HT', 'TP/1.1\r\nHo', 'st: evil.test\r\n\r\n']) {
      client.send(part)
      await Bun.sleep(15)
    }
    await client.over()
    expect(client.text).toContain('x-pen-denied: host-mismatch')
    expect(world.up.text).toBe('')
  })

  test('a first line without an end is not forwarded', async () => {
    const client = await world.byName('allowed.test', 80)
    await client.send('XYZ /').over()
    expect(client.wasReset).toBe(true)
    expect(world.up.seen).toEqual([])
  })

  const accepted: Readonly<Record<string, [string, string]>> = {
    'its name': [GET, 'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n'],
    'its name and port, kept as written': [
      'GET / HTTP/1.1\r\nHost: Allowed.test:80\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n',
    ],
    'its name as target': [
      'GET http://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
      'GET /x HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
    ],
    'OPTIONS for all of it': [
      'OPTIONS * HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
      'OPTIONS * HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
    ],
    'an empty line in front': [`\r\n${GET}`, GET],
    'a path in UTF-8, as curl sends it': [
      'GET /\xc3\xa4?\xff HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
      'GET /%C3%A4?%FF HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
    ],
  }
  for (const [what, [bytes, seen]] of Object.entries(accepted))
    test(`${what}: forwarded`, async () => {
      const client = await world.byName('allowed.test', 80)
      await client.send(bytes).heard('ok')
      expect(world.up.text).toBe(seen)
    })

  test('one connection serves many requests over one upstream, and the first wrong one ends it', async () => {
    const client = await world.byName('allowed.test', 80)
    for (let i = 0; i < 3; i++) {
      client.text = ''
      await client.send(GET).heard('ok')
    }
    await client.send('GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n').over()
    expect(world.up.requests.length).toBe(3)
    expect(world.up.seen.length).toBe(1)
    await eventually(() => world.up.seen[0]?.closed === true)
  })

  test('an address in a rule is a valid Host', async () => {
    const recorder = await world.recorder('203.0.113.7')
    const client = await world.byAddress('203.0.113.7', 80)
    await client.send('GET / HTTP/1.1\r\nHost: 203.0.113.7\r\n\r\n').heard('ok')
    await client.send('GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n').over()
    expect(recorder.requests.length).toBe(1)
  })

  test('P10 a service of this machine has one name and needs a rule', async () => {
    const recorder = await world.recorder('127.0.0.1')
    const client = await world.byName('host.pen.internal', 8000)
    await client.send('GET / HTTP/1.1\r\nHost: host.pen.internal:8000\r\n\r\n').heard('ok')
    expect(recorder.requests.length).toBe(1)
    expect(world.lookups).toEqual([])
    const other = await world.byName('host.pen.internal', 8001)
    await other.send('GET / HTTP/1.1\r\nHost: host.pen.internal:8001\r\n\r\n').over()
    expect(other.text).toContain('pen allow host.pen.internal:8001')
    const literal = await world.byAddress('127.0.0.1', 8000)
    await literal.send('GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n').over()
    expect(recorder.seen.length).toBe(1)
  })
})

describe('an upstream’s response is read as strictly', () => {
  const bad: Readonly<Record<string, string>> = {
    'status 099': 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n',
    'status 1000': 'HTTP/1.1 1000 X\r\nContent-Length: 0\r\n\r\n',
    'no HTTP at all': 'SSH-2.0-x\r\n\r\n',
    'length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc',
    'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc',
    'another coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
    'NUL in a field': 'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n',
    'a CR alone in a field': 'HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n',
    'a folded line': 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n',
    'a head of 1 MiB': `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1_048_576)}\r\n\r\n`,
    'many fields': `HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(300)}\r\n`,
    'endless 1xx': 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(50),
    'an unrequested upgrade':
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  }
  for (const [what, response] of Object.entries(bad))
    test(`${what}: 502`, async () => {
      world.up.behave = responding(response)
      const client = await world.byName('allowed.test', 80)
      await client.send(GET).over()
      const final = client.text.replaceAll('HTTP/1.1 103 Early Hints\r\n\r\n', '')
      expect(final).toStartWith('HTTP/1.1 502 Bad Gateway\r\n')
      expect(final).not.toContain('Set-Cookie')
      expect(world.kinds()).toEqual(['connection-allowed', 'connection-failed bad-answer'])
    })

  test('a server cannot set the fields that only pen sets', async () => {
    world.up.behave = responding(answer('ok', 'x-pen-denied: not-allowed\r\nKeep-Alive: 5\r\nX: y\r\n'))
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).heard('ok')
    expect(client.text).toBe('HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\nok')
  })

  test('chunks are framed again by the gateway', async () => {
    world.up.behave = responding(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nX: y\r\n\r\n',
    )
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).heard('X: y\r\n\r\n')
    expect(client.text).toBe(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n',
    )
  })

  test('a body without length ends with the connection', async () => {
    world.up.behave = socket => void socket.end('HTTP/1.1 200 OK\r\n\r\nall of it')
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).over()
    expect(client.text).toBe('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it')
    expect(client.error).toBeUndefined()
  })

  test('a body that is cut short ends in a reset', async () => {
    world.up.behave = socket => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).until(() => client.closed)
    expect(client.wasReset).toBe(true)
  })

  test('a HEAD has no body, whatever its length', async () => {
    world.up.behave = responding('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n')
    const client = await world.byName('allowed.test', 80)
    await client.send('HEAD / HTTP/1.1\r\nHost: allowed.test\r\n\r\n').heard('\r\n\r\n')
    expect(client.text).toBe('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n')
    client.text = ''
    world.up.behave = responding(answer('ok'))
    await client.send(GET).heard('ok')
    expect(world.up.seen.length).toBe(1)
  })

  test('A51 the gateway follows no redirect', async () => {
    world.up.behave = responding(
      'HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n',
    )
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).heard('\r\n\r\n')
    expect(client.text).toContain('Location: http://evil.test/')
    expect(world.evil.seen).toEqual([])
    expect(world.lookups).toEqual(['allowed.test'])
  })

  test('large bodies pass unchanged in both directions', async () => {
    const size = 5_000_000
    const body = Buffer.alloc(size, 'abcdefghij')
    const digest = createHash('sha256').update(body).digest('hex')
    world.up.behave = (socket, seen) => {
      const at = seen.text.indexOf('\r\n\r\n')
      if (seen.text.length - at - 4 < size) return
      const hash = createHash('sha256')
        .update(seen.text.slice(at + 4), 'latin1')
        .digest('hex')
      socket.write(
        `HTTP/1.1 200 OK\r\nX-Hash: ${hash}\r\nTransfer-Encoding: chunked\r\n\r\n${size.toString(16)}\r\n`,
      )
      socket.write(body)
      socket.write('\r\n0\r\n\r\n')
    }
    const client = await world.byName('allowed.test', 80)
    client.send(`POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: ${size}\r\n\r\n`).send(body)
    await client.until(() => client.text.endsWith('\r\n0\r\n\r\n'), 10_000)
    expect(client.text).toContain(`X-Hash: ${digest}`)
    expect(client.text.length).toBeGreaterThan(size)
  }, 20_000)
})

describe('a request body that turns out malformed', () => {
  test('is answered with 400 and the upstream is dropped', async () => {
    const client = await world.byName('allowed.test', 80)
    world.up.behave = () => undefined
    client.send('POST / HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    await eventually(() => world.up.text.includes('abc'))
    await client.send('XYZ\r\n').over()
    expect(client.text).toStartWith('HTTP/1.1 400')
    await eventually(() => world.up.seen[0]?.closed === true)
    expect(world.up.text).not.toContain('0\r\n\r\n')
  })
})

describe('trailers of a request', () => {
  const POST = 'POST / HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n'
  const NEXT = 'GET /next HTTP/1.1\r\nHost: allowed.test\r\n\r\n'

  test('pass, also when they arrive byte by byte, without those that mean something in a head', async () => {
    world.up.behave = (socket, seen) => {
      if (/(?:0\r\n[^\r]+\r\n\r\n|next HTTP.*\r\n\r\n)$/s.test(seen.text)) socket.write(answer('ok'))
    }
    const unjudged = ['Host: evil.test', 'X_HTTP_Method_Override: PUT', 'X-Original-URL: /x', 'Cookie: a=b']
    const trailers = [
      'X-Checksum: 1',
      ...unjudged,
      'Content-Length: 9',
      'Authorization: b',
      'Range: bytes=0-1',
    ]
    for (const pause of [false, true]) {
      const before = world.up.text.length
      const client = await world.byName('allowed.test', 80)
      client.send(POST)
      for (const byte of `${trailers.join('\r\n')}\r\n\r\n`) {
        client.send(byte)
        if (pause) await Bun.sleep(1)
      }
      client.send(NEXT)
      await client.until(() => client.text.split('HTTP/1.1 200').length === 3)
      const heard = world.up.text.slice(before)
      expect(heard).toContain('3\r\nabc\r\n0\r\nX-Checksum: 1\r\n\r\nGET /next')
    }
  })

  test('are asked for by a program that takes them, and come with the answer', async () => {
    world.up.behave = socket =>
      void socket.write(
        'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nX-Pen-Denied: no\r\n\r\n',
      )
    const client = await world.byName('allowed.test', 80)
    await client
      .send('GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: TE\r\nTE: trailers\r\n\r\n')
      .heard('X-Sum: 1')
    expect(client.text).toEndWith('2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n')
    expect(client.text).toContain('Trailer: X-Sum\r\n')
    expect(world.up.text).toContain('TE: trailers\r\nConnection: TE\r\n')
  })

  for (const [what, text] of Object.entries({
    'too long altogether': 'a: b\r\n'.repeat(3000),
    'with a line that ends in LF': 'a: b\n\r\n',
    'with a folded line': 'a: b\r\n c\r\n\r\n',
    'without a colon': 'a: b\r\nsomething\r\n\r\n',
  }))
    test(`${what}: 400, and the bytes after it are not read as a request`, async () => {
      world.up.behave = () => undefined
      const client = await world.byName('allowed.test', 80)
      await client.send(POST).send(text).send(NEXT).over()
      expect(client.text).toStartWith('HTTP/1.1 400')
      expect(world.up.text).not.toContain('/next')
    })
})

describe('WebSocket', () => {
  const UPGRADE =
    'GET /ws HTTP/1.1\r\nHost: allowed.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n'

  test('to an allowed name becomes a tunnel', async () => {
    world.up.behave = (socket, seen, text) =>
      seen.text.endsWith('\r\n\r\n')
        ? void socket.write(
            'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\nfirst',
          )
        : echo(socket, seen, text)
    const client = await world.byName('allowed.test', 80)
    await client.send(UPGRADE).heard('first')
    expect(client.text).toStartWith(
      'HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nUpgrade: websocket\r\n',
    )
    await client.send('\x81\x05hello').heard('\x81\x05hello')
    expect(world.up.text).toContain('Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello')
  })

  test('that the server declines is an ordinary response, and the next request is judged', async () => {
    const client = await world.byName('allowed.test', 80)
    await client.send(UPGRADE).heard('ok')
    await client.send('GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n').over()
    expect(client.text).toContain('x-pen-denied: host-mismatch')
    expect(world.up.requests.length).toBe(1)
  })
})

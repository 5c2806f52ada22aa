import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { clientHello } from '../../test/gateway/hello.ts'
import { answer, echo, serveHttp } from '../../test/gateway/recorder.ts'
import { World } from '../../test/gateway/world.ts'

const ALERT = '\x15\x03\x03\x00\x02\x02\x31'

let world: World
beforeEach(async () => {
  world = await World.start({ limits: { headMs: 300 } })
})
afterEach(() => world.close())

const statusOf = (text: string): number => Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(text)?.[1] ?? 0)

/** Sends the bytes to the proxy port and waits until the gateway is done, or has answered. */
async function ask(bytes: string): Promise<{ text: string; status: number }> {
  const client = await world.byProxy()
  await client.send(bytes).until(() => client.text.endsWith('ok'))
  return { text: client.text, status: statusOf(client.text) }
}

const connectTo = (target: string, more = ''): string =>
  `CONNECT ${target} HTTP/1.1\r\nHost: allowed.test:443\r\n${more}\r\n`
const get = (target: string, more = 'Host: allowed.test\r\n'): string =>
  `GET ${target} HTTP/1.1\r\n${more}\r\n`
const post = (more: string, body: string): string =>
  `POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n${more}\r\n\r\n${body}`

/** Must never be seen upstream. Names are the classes of the attack corpus. */
const REFUSED: Readonly<Record<string, string>> = {
  'A01a CONNECT to one name with the Host of another':
    'CONNECT allowed.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n',
  'A01b CONNECT with the Host of another port':
    'CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:22\r\n\r\n',
  'A02c a path on the proxy port': get('/'),
  'A02d a star on the proxy port': 'OPTIONS * HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
  'A02e a path with two slashes': get('//evil.test/'),
  'A02f two Hosts': get('http://allowed.test/', 'Host: allowed.test\r\nHost: evil.test\r\n'),
  'A02g no Host': get('http://allowed.test/', ''),
  'A02i HTTP/0.9 with a version': 'GET http://allowed.test/ HTTP/0.9\r\n\r\n',
  'A02i HTTP/0.9 without one': 'GET http://allowed.test/\r\n\r\n',
  'A02i HTTP/1.2': 'GET http://allowed.test/ HTTP/1.2\r\nHost: allowed.test\r\n\r\n',
  'A02i HTTP/2 without TLS': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'A02j another scheme': get('ftp://allowed.test/'),
  'A02k https as a target': get('https://allowed.test/'),
  'A02l no host in the target': get('http:///evil.test/'),
  'A02m another name behind an @': get('http://allowed.test@evil.test/'),
  'A02n a user name': get('http://user:secret@allowed.test/'),
  'A02o two ports': get('http://allowed.test:80:81/'),
  'A02p a fragment': get('http://allowed.test/#evil.test'),
  'A03.01 a missing port': connectTo('allowed.test:'),
  'A03.02 two ports': connectTo('allowed.test:443:22'),
  'A03.03 a URL': connectTo('http://allowed.test:443/'),
  'A03.04 a path': connectTo('/evil'),
  'A03.05 a star': connectTo('*'),
  'A03.06 an encoded NUL': connectTo('evil.test%00.allowed.test:443'),
  'A03.07 an encoded dot': connectTo('evil.test%2eallowed.test:443'),
  'A03.08 no port': connectTo('allowed.test'),
  'A03.09 a port with a leading zero': connectTo('allowed.test:0443'),
  'A03.10 a port in hexadecimal': connectTo('allowed.test:0x1bb'),
  'A03.11 a port beyond 32 bits': connectTo('allowed.test:4294967739'),
  'A03.12 a negative port': connectTo('allowed.test:-1'),
  'A03.13 a short address': connectTo('127.1:443'),
  'A03.14 an address as one number': connectTo('2130706433:443'),
  'A03.15 an address in octal': connectTo('0177.0.0.1:443'),
  'A03.16 the loopback of IPv6': connectTo('[::1]:443'),
  'A03.17 IPv4 in IPv6': connectTo('[::ffff:7f00:1]:443'),
  'A03.18 zero': connectTo('0:443'),
  'A03.19 a zone': connectTo('[fe80::1%25lo]:443'),
  'A03.20 another port': connectTo('allowed.test:22'),
  'A04 a NUL': 'CONNECT evil.test\0.allowed.test:443 HTTP/1.1\r\nHost: a\r\n\r\n',
  'A05a length and chunks': post(
    'Content-Length: 4\r\nTransfer-Encoding: chunked',
    '0\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n',
  ),
  'A05b two lengths': post('Content-Length: 5\r\nContent-Length: 6', 'abcdef'),
  'A05b the same length twice': post('Content-Length: 5\r\nContent-Length: 5', 'abcde'),
  'A05b a list of lengths': post('Content-Length: 5, 5', 'abcde'),
  'A05c almost chunked': post('Transfer-Encoding: xchunked', '0\r\n\r\n'),
  'A05d.2 identity': post('Transfer-Encoding: identity', '3\r\nabc\r\n0\r\n\r\n'),
  'A05d.3 chunked, then identity': post('Transfer-Encoding: chunked, identity', '3\r\nabc\r\n0\r\n\r\n'),
  'A05d.4 gzip, then chunked': post('Transfer-Encoding: gzip, chunked', '3\r\nabc\r\n0\r\n\r\n'),
  'A05d.5 chunked twice': post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
  'A05d.7 chunked in quotes': post('Transfer-Encoding: "chunked"', '3\r\nabc\r\n0\r\n\r\n'),
  'A05d.9 a vertical tab before chunked': post('Transfer-Encoding: \x0bchunked', '3\r\nabc\r\n0\r\n\r\n'),
  'A05e.0 a signed length': post('Content-Length: +5', 'abcde'),
  'A05e.2 a length in hexadecimal': post('Content-Length: 0x5', 'abcde'),
  'A05e.5 a vertical tab behind the length': post('Content-Length: 5\x0b', 'abcde'),
  'A05e.6 a length with a leading zero': post('Content-Length: 05', 'abcde'),
  'A05e.7 a length beyond 64 bits': post('Content-Length: 99999999999999999999', 'abcde'),
  'A05e.8 an empty length': post('Content-Length: ', 'abcde'),
  'A05f a space before the colon': post('Content-Length : 5', 'abcde'),
  'A05g a folded line': get(
    'http://allowed.test/',
    'Host: allowed.test\r\nX: a\r\n Transfer-Encoding: chunked\r\n',
  ),
  'A05h lines that end in LF': 'GET http://allowed.test/ HTTP/1.1\nHost: allowed.test\n\n',
  'A05h one line that ends in LF': get('http://allowed.test/', 'Host: allowed.test\r\nX: a\nY: b\r\n'),
  'A05i a CR alone': get('http://allowed.test/', 'Host: allowed.test\rX: b\r\n'),
  'A05j a chunk with a long extension': post(
    'Transfer-Encoding: chunked',
    `1;${'a'.repeat(20_000)}\r\nZ\r\n0\r\n\r\n`,
  ),
  'A05k a chunk beyond 64 bits': post('Transfer-Encoding: chunked', '7fffffffffffffffff\r\nZ'),
  'A05k a signed chunk': post('Transfer-Encoding: chunked', '-1\r\nZ'),
  'A05k a chunk in 0x': post('Transfer-Encoding: chunked', '0x1\r\nZ\r\n0\r\n\r\n'),
  'A05l a chunk line that ends in LF': post('Transfer-Encoding: chunked', '1\nZ\r\n0\r\n\r\n'),
  'A05m many fields and one that counts behind them': post(
    `${Array.from({ length: 2100 }, (_, i) => `a${i}:`).join('\r\n')}\r\nTransfer-Encoding: chunked`,
    '3\r\nabc\r\n0\r\n\r\n',
  ),
  'A05n a NUL in a value': get('http://allowed.test/', 'Host: allowed.test\r\nX: a\0b\r\n'),
  'A06d CONNECT with a length': connectTo('allowed.test:443', 'Content-Length: 10\r\n').concat('0123456789'),
  'A06e CONNECT with chunks': connectTo('allowed.test:443', 'Transfer-Encoding: chunked\r\n').concat(
    '0\r\n\r\n',
  ),
  'A07a a refused name that waits for 100':
    'POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n',
  'A07d TRACE': 'TRACE http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
  'A07f a method in small letters': 'get http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
  'A08a a refused name with markup in its path': get(
    'http://evil.test/%0d%0aSet-Cookie:x=1<script>',
    'Host: evil.test\r\n',
  ),
  'A09a a field of 20 KB': get('http://allowed.test/', `Host: allowed.test\r\nX: ${'y'.repeat(20_000)}\r\n`),
  'A09b a target of 70 KB': get(`http://allowed.test/${'a'.repeat(70_000)}`),
  'A09c ESC in the target': get('http://allowed.test/\x1b[2J'),
  'A09d a byte beyond ASCII in the authority': get('http://allow\xe9d.test/'),
  'A22 a tab in the authority': get('http://allowed.test\t/'),
  'A30 a file': get('file:///etc/passwd'),
}

describe('P9 the proxy refuses', () => {
  for (const [what, bytes] of Object.entries(REFUSED))
    test(`${what}: 4xx or 5xx, one record, nothing upstream`, async () => {
      const { text, status } = await ask(bytes)
      expect(status).toBeGreaterThanOrEqual(400)
      expect(text).toContain('Connection: close')
      expect(text.split('HTTP/1.1 ').length).toBe(2)
      expect(text).not.toContain('Set-Cookie')
      expect(text).not.toContain('<script>')
      expect(text).not.toContain('secret')
      expect(world.up.seen).toEqual([])
      expect(world.evil.seen).toEqual([])
      expect(world.lookups).toEqual([])
      expect(world.audit.length).toBe(1)
      expect(world.audit[0]?.kind).toBe('connection-denied')
      expect(JSON.stringify(world.audit)).not.toContain('secret')
    })

  test('TLS on the proxy port with an alert, and bytes of no protocol with a reset', async () => {
    const tls = await world.byProxy()
    await tls.send(clientHello()).over()
    expect(tls.text).toBe(ALERT)
    const other = await world.byProxy()
    await other.send('\x01\x02').over()
    expect(other.wasReset).toBe(true)
    expect(world.kinds()).toEqual([
      'connection-denied not-a-proxy-request',
      'connection-denied not-a-proxy-request',
    ])
  })
})

describe('the proxy writes its own requests', () => {
  const forwarded: Readonly<Record<string, [string, RegExp]>> = {
    'A02a the target decides, and the Host is made from it': [
      get('http://allowed.test/x?y', 'Host: evil.test\r\n'),
      /^GET \/x\?y HTTP\/1\.1\r\nHost: allowed\.test\r\n\r\n$/,
    ],
    'A02h HTTP/1.0 without a Host': [
      'GET http://allowed.test/ HTTP/1.0\r\n\r\n',
      /^GET \/ HTTP\/1\.1\r\nHost: allowed\.test\r\nConnection: close\r\n\r\n$/,
    ],
    'a target without a path': [get('http://allowed.test?q'), /^GET \/\?q HTTP\/1\.1\r\n/],
    'capitals and a final dot': [get('http://ALLOWED.Test.:80/'), /\r\nHost: allowed\.test\r\n/],
    'A05o look-alikes are left out': [
      get(
        'http://allowed.test/',
        'Host: allowed.test\r\nTransfer_Encoding: chunked\r\nContent-Length: 0\r\nProxy_Authorization: x\r\nX: y\r\n',
      ),
      /^GET \/ HTTP\/1\.1\r\nHost: allowed\.test\r\nX: y\r\nContent-Length: 0\r\n\r\n$/,
    ],
    'A41 fields of one hop are left out, Host is not': [
      get(
        'http://allowed.test/',
        'Host: allowed.test\r\nConnection: close, Host, X-Auth\r\nX-Auth: 1\r\nProxy-Authorization: x\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nKeep-Alive: 5\r\n',
      ),
      /^GET \/ HTTP\/1\.1\r\nHost: allowed\.test\r\n\r\n$/,
    ],
    'A48 h2c is not passed on': [
      get(
        'http://allowed.test/',
        'Host: allowed.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n',
      ),
      /^GET \/ HTTP\/1\.1\r\nHost: allowed\.test\r\n\r\n$/,
    ],
    'a path in UTF-8': [
      'GET http://allowed.test/\xc3\xa4 HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
      /^GET \/%C3%A4 HTTP/,
    ],
    'A07e an unusual method': [
      'PROPFIND http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
      /^PROPFIND \/ HTTP/,
    ],
    'a body with a length': [post('Content-Length: 5', 'abcde'), /\r\nContent-Length: 5\r\n\r\nabcde$/],
    'a body in chunks, without extensions': [
      post('Transfer-Encoding: Chunked', '3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n'),
      /\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n$/,
    ],
    'a chunked body whose data looks like a request': [
      post('Transfer-Encoding: chunked', '20\r\nGET http://evil.test/ HTTP/1.1\r\n\r\n0\r\n\r\n'),
      /\r\n20\r\nGET http:\/\/evil\.test\/ HTTP\/1\.1\r\n\r\n0\r\n\r\n$/,
    ],
  }
  for (const [what, [bytes, seen]] of Object.entries(forwarded))
    test(what, async () => {
      const { status } = await ask(bytes)
      expect(status).toBe(200)
      expect(world.up.text).toMatch(seen)
      expect(world.kinds()[0]).toBe('connection-allowed')
      expect(world.evil.seen).toEqual([])
    })

  test('A42 requests in one packet are judged one by one', async () => {
    const client = await world.byProxy()
    client.send(
      `${get('http://allowed.test/1')}${get('http://allowed.test/2')}${get('http://evil.test/3')}${get('http://allowed.test/4')}`,
    )
    await client.over()
    expect(world.up.requests).toEqual(['GET /1 HTTP/1.1', 'GET /2 HTTP/1.1'])
    expect(world.up.seen.length).toBe(1)
    expect(client.text.match(/HTTP\/1\.1 [0-9]+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 403'])
    expect(world.evil.seen).toEqual([])
    expect(world.kinds()).toEqual([
      'connection-allowed',
      'connection-closed client',
      'connection-denied not-allowed',
    ])
  })

  test('a thousand requests in one packet', async () => {
    const client = await world.byProxy()
    client.send(get('http://allowed.test/').repeat(1000))
    await client.until(() => client.text.split('200 OK').length === 1001, 5000)
    expect(world.up.requests.length).toBe(1000)
  })

  test('every target has its own upstream', async () => {
    const client = await world.byProxy()
    await client.send(get('http://allowed.test/1')).heard('ok')
    client.text = ''
    await client.send(get('http://allowed.test:443/2')).heard('ok')
    expect(world.up.seen.length).toBe(2)
    expect(world.up.seen[0]?.closed).toBe(true)
    expect(world.kinds()).toEqual(['connection-allowed', 'connection-closed client', 'connection-allowed'])
  })

  test('A07a the answer 100 comes from the server, after the verdict', async () => {
    world.up.behave = (socket, seen) =>
      void socket.write(seen.text.endsWith('abc') ? answer('ok') : 'HTTP/1.1 100 Continue\r\n\r\n')
    const client = await world.byProxy()
    await client.send(post('Expect: 100-continue\r\nContent-Length: 3', '')).heard('100 Continue')
    await client.send('abc').heard('ok')
    expect(world.up.text).toEndWith('abc')
  })
})

describe('CONNECT', () => {
  const established = 'HTTP/1.1 200 Connection established\r\n\r\n'

  test('opens a tunnel in which the server name has to agree', async () => {
    world.up.behave = echo
    const client = await world.byProxy()
    await client.send(connectTo('allowed.test:443')).heard(established)
    const hello = clientHello()
    await client.send(hello).until(() => client.text.length === established.length + hello.length)
    expect(world.up.text).toBe(hello.toString('latin1'))
  })

  test('with another server name: an alert, and no byte upstream', async () => {
    const client = await world.byProxy()
    await client.send(connectTo('allowed.test:443')).heard(established)
    await client.send(clientHello({ names: ['evil.test'] })).over()
    expect(client.text).toBe(established + ALERT)
    expect(world.up.text).toBe('')
    expect(world.kinds()).toContain('connection-denied sni-mismatch')
  })

  test('with HTTP inside: the Host has to agree', async () => {
    const client = await world.byProxy()
    await client.send('CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n').heard(established)
    await client.send('GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n').heard('ok')
    await client.send('GET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n').over()
    expect(client.text).toContain('x-pen-denied: host-mismatch')
    expect(world.up.requests).toEqual(['GET / HTTP/1.1'])
    expect(world.up.seen.length).toBe(1)
  })

  test('A06b after a refused one nothing is read', async () => {
    const client = await world.byProxy()
    client.send(`CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n${get('http://allowed.test/')}`)
    await client.over()
    expect(statusOf(client.text)).toBe(403)
    expect(client.text).toContain('pen allow evil.test:443')
    expect(world.up.seen).toEqual([])
    expect(world.kinds()).toEqual(['connection-denied not-allowed'])
  })

  test('A06c bytes in the same packet wait for the answer', async () => {
    world.up.behave = echo
    const client = await world.byProxy()
    const hello = clientHello()
    client.send(Buffer.concat([Buffer.from(connectTo('allowed.test:443')), hello]))
    await client.until(() => client.text.length === established.length + hello.length)
    expect(client.text).toBe(established + hello.toString('latin1'))
  })

  test('an unreachable upstream is reported as unreachable', async () => {
    world.zone['allowed.test'] = ['203.0.113.99']
    const client = await world.byProxy()
    await client.send(connectTo('allowed.test:443')).over()
    expect(statusOf(client.text)).toBe(502)
    expect(world.kinds()).toEqual(['connection-allowed', 'connection-failed upstream-unreachable'])
  })

  test('a server that speaks first reaches the client', async () => {
    world.up.greeting = '220 mail\r\n'
    const client = await world.byProxy()
    await client.send(connectTo('allowed.test:443')).heard('220 mail')
    expect(client.text).toBe(`${established}220 mail\r\n`)
  })

  test('CONNECT on a transparent connection is refused', async () => {
    world.up.behave = serveHttp(established)
    const client = await world.byName('allowed.test', 80)
    await client.send('CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n').over()
    expect(client.text).toContain('x-pen-denied: host-mismatch')
    expect(world.up.seen).toEqual([])
  })
})

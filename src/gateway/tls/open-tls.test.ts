import { afterEach, describe, expect, test } from 'bun:test'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import { type Client, eventually } from '../../../test/gateway/client.ts'
import { type Recorder, serveHttp } from '../../../test/gateway/recorder.ts'
import { host, policyOf, UP, World, type WorldOptions } from '../../../test/gateway/world.ts'

const authority = newAuthority('inside')
const outside = newAuthority('outside')
let world: World
afterEach(() => world.close())

const RULES = ['GET,HEAD allowed.test/repos/acme/**', 'POST allowed.test/upload']
const start = async (options: WorldOptions = {}): Promise<void> => {
  world = await World.start({ allow: RULES, authority, outside, ...options })
}
async function connect(name = 'allowed.test'): Promise<Client> {
  const client = await world.byTls(name, 443)
  if (client === undefined) throw new Error('no handshake')
  return client
}
const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: allowed.test\r\n${more}\r\n`

describe('an opened connection', () => {
  test('carries an allowed request to the server, and its answer back', async () => {
    await start()
    const client = await connect()
    await client.send(get('/repos/acme/x?page=2')).heard('ok')
    expect(world.up.requests).toEqual(['GET /repos/acme/x?page=2 HTTP/1.1'])
    expect(world.audit).toMatchObject([
      { kind: 'connection-allowed', name: 'allowed.test' },
      {
        kind: 'request-allowed',
        method: 'GET',
        path: '/repos/acme/x',
        rule: 'GET,HEAD allowed.test:443/repos/acme/**',
      },
      { kind: 'request-answered', status: 200 },
    ])
    expect(JSON.stringify(world.audit)).not.toContain('page')
  })

  test('gets a verdict for each request on one connection', async () => {
    await start()
    const client = await connect()
    await client.send(get('/repos/acme/x')).heard('ok')
    await client.send(get('/repos/acme/y')).until(() => world.up.requests.length === 2)
    await client.send(get('/user')).over()
    expect(client.text).toContain('HTTP/1.1 403')
    expect(client.text).toContain("pen allow 'GET allowed.test:443/user'")
    expect(world.up.requests).toEqual(['GET /repos/acme/x HTTP/1.1', 'GET /repos/acme/y HTTP/1.1'])
    expect(world.up.seen).toHaveLength(1)
    expect(world.kinds()).toContain('connection-denied request-not-allowed')
  })

  test('pipelined requests are judged one by one', async () => {
    await start()
    const client = await connect()
    await client.send(get('/repos/acme/x') + get('/secret') + get('/repos/acme/y')).over()
    expect(world.up.requests).toEqual(['GET /repos/acme/x HTTP/1.1'])
  })

  test('the path is sent in the form that was judged', async () => {
    await start()
    const client = await connect()
    await client.send(get('//repos/%61cme//x')).heard('ok')
    expect(world.up.requests).toEqual(['GET /repos/acme/x HTTP/1.1'])
  })

  for (const [what, head] of Object.entries({
    'another method': 'DELETE /repos/acme/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
    'a method in a field': get('/repos/acme/x', 'X-HTTP-Method-Override: DELETE\r\n'),
    'a method in a parameter': get('/repos/acme/x?a=b&%5Fmethod=delete'),
    'a second path, as WebDAV names it': get('/repos/acme/x', 'Destination: /other/x\r\n'),
    'a second path, as S3 names it': get('/repos/acme/x', 'x-amz-copy-source: /other/x\r\n'),
    'a second path, as Swift names it': get('/repos/acme/x', 'X-Copy-From: /other/x\r\n'),
    'a dot segment': get('/repos/acme/%2e%2e/other'),
    'another Host': 'GET /repos/acme/x HTTP/1.1\r\nHost: evil.test\r\n\r\n',
    'an absolute target of another host':
      'GET http://evil.test/repos/acme/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
    'a second Host': get('/repos/acme/x', 'Host: evil.test\r\n'),
    'a line that ends in LF': 'GET /repos/acme/x HTTP/1.1\nHost: allowed.test\n\n',
    CONNECT: 'CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n',
    TRACE: 'TRACE /repos/acme/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
  }))
    test(`${what} is refused, and no byte leaves`, async () => {
      await start()
      const client = await connect()
      await client.send(head).over()
      expect(client.text).toMatch(/^HTTP\/1\.1 4\d\d /)
      expect(world.up.seen).toHaveLength(0)
      expect(world.evil.seen).toHaveLength(0)
    })

  test('streams a chunked upload with 100-continue, and an answer as it comes', async () => {
    await start()
    const client = await connect()
    world.up.behave = (socket, seen) => {
      if (seen.text.endsWith('\r\n\r\n') && !seen.text.includes('hello'))
        socket.write('HTTP/1.1 100 Continue\r\n\r\n')
      if (seen.text.endsWith('0\r\n\r\n'))
        socket.write(
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n6\r\nfirst \r\n',
        )
    }
    client.send(
      'POST /upload HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n',
    )
    await client.heard('100 Continue')
    await client.send('5\r\nhello\r\n0\r\n\r\n').heard('first ')
    for (const socket of world.up.sockets) socket.write('0\r\n\r\n')
    await client.heard('0\r\n\r\n')
    expect(world.up.text).toContain('5\r\nhello\r\n0\r\n\r\n')
  })

  test('a WebSocket is judged by its handshake, then it is a tunnel', async () => {
    await start()
    world.up.behave = (socket, _seen, text) =>
      void socket.write(
        text.startsWith('GET')
          ? 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'
          : `echo ${text}`,
        'latin1',
      )
    const upgrade = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n'
    const refused = await connect()
    await refused.send(get('/chat', upgrade)).over()
    expect(refused.text).toContain('403')
    const client = await connect()
    await client.send(get('/repos/acme/chat', upgrade)).heard('101')
    await client.send('\x81\x02hi').heard('echo')
    expect(client.text).toEndWith('echo \x81\x02hi')
  })

  test('a server with a wrong certificate gets no request', async () => {
    await start({ outside: newAuthority('unknown') })
    world.up.close()
    const stranger = await world.recorder('198.51.100.10', outside.leafFor(host('allowed.test')))
    const client = await connect()
    await client.send(get('/repos/acme/x')).over()
    expect(client.text).toContain('HTTP/1.1 502')
    expect(client.text).toContain('x-pen-error: upstream-certificate')
    expect(stranger.text).toBe('')
    expect(world.kinds()).toContain('connection-failed upstream-certificate')
  })

  test('ends when a narrower policy refuses the request that it serves', async () => {
    await start()
    world.up.behave = serveHttp('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n')
    const client = await connect()
    await client.send(get('/repos/acme/x')).heard('x')
    world.policy = policyOf({ allow: ['POST allowed.test/upload'] })
    expect(world.gateway.policyChanged()).toBe(1)
    await client.over()
    expect(client.closed).toBe(true)
  })

  test('a download that is not read stops the server', async () => {
    await start()
    let sent = 0
    world.up.behave = socket => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n')
      const more = (): void => {
        while (sent < 500_000_000 && socket.write(Buffer.alloc(1_048_576))) sent += 1_048_576
      }
      socket.on('drain', more)
      more()
    }
    const client = await connect()
    client.send(get('/repos/acme/x')).socket.pause()
    await new Promise(resolve => setTimeout(resolve, 700))
    expect(sent).toBeLessThan(40_000_000)
  })
})

describe('a host with rules about requests', () => {
  test('is never reached by another protocol, nor by its address', async () => {
    await start({ allow: [...RULES, '198.51.100.10:443'] })
    const opaque = await world.byName('allowed.test', 443)
    await opaque.send('\x01\x02hello').over()
    const silent = await world.byName('allowed.test', 443)
    await new Promise(resolve => setTimeout(resolve, 200))
    silent.socket.destroy()
    expect(world.kinds()).toContain('connection-denied requests-only')
    expect(world.up.seen).toHaveLength(0)
    const { socket } = await world.byAddress('198.51.100.10', 443)
    const { connect: connectTls } = await import('node:tls')
    const direct = connectTls({ socket, servername: 'allowed.test', ca: outside.certificate })
    const result = await new Promise(resolve => {
      direct.once('secureConnect', () => resolve('done'))
      direct.once('error', () => resolve('refused'))
      direct.once('close', () => resolve('refused'))
    })
    expect(result).toBe('refused')
    expect(world.kinds()).toContain('connection-denied sni-mismatch')
  })

  test('a CONNECT does not avoid the rules', async () => {
    await start()
    const proxy = await world.byProxy()
    await proxy.send('CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n').heard('200')
    await proxy.send(get('/user')).over()
    expect(proxy.text).toContain('403')
    expect(world.up.text).toBe('')
  })

  test('without the authority inside, it is refused, and never passes unopened', async () => {
    world = await World.start({ allow: RULES, outside })
    expect(await world.byTls('allowed.test', 443, { ca: outside.certificate })).toBeUndefined()
    await eventually(() => world.kinds().includes('connection-denied not-opened'))
    expect(world.up.seen).toHaveLength(0)
  })

  test('a program that does not trust the authority is reported', async () => {
    await start()
    expect(await world.byTls('allowed.test', 443, { ca: outside.certificate })).toBeUndefined()
    await eventually(() => world.kinds().includes('connection-failed untrusted-authority'))
    expect(world.up.text).toBe('')
    const failed = world.audit.find(({ kind }) => kind === 'connection-failed')
    expect(failed).toMatchObject({ why: expect.stringContaining('pen opens this host for the rule GET') })
  })

  test('a program that closes after the handshake is reported, and not one that sent a request', async () => {
    await start()
    const asked = await connect()
    await asked.send(get('/repos/acme/x')).heard('ok')
    asked.socket.destroy()
    await eventually(() => world.kinds().includes('connection-closed client'))
    const silent = await connect()
    silent.socket.destroy()
    await eventually(() => world.kinds().includes('connection-failed untrusted-authority'))
    expect(world.up.requests).toHaveLength(1)
    const failed = world.audit.filter(({ kind }) => kind === 'connection-failed')
    expect(failed).toEqual([expect.objectContaining({ why: expect.stringContaining('for the rule GET') })])
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'a server that wants a client certificate in %s is reported, with the rule',
    async version => {
      await start()
      const limits = { minVersion: version, maxVersion: version, requestCert: true, rejectUnauthorized: true }
      const wants = createServer({
        ...outside.leafFor(host('allowed.test')),
        ca: outside.certificate,
        ...limits,
      })
      wants.on('tlsClientError', () => undefined)
      await new Promise<void>(resolve => wants.listen(0, '127.0.0.1', resolve))
      const { port } = wants.address() as AddressInfo
      world.recorders.set(UP, { port, close: () => wants.close() } as unknown as Recorder)
      const client = await world.byTls('allowed.test', 443)
      await client?.send(get('/repos/acme/x')).over()
      expect(client?.text).toContain('x-pen-error: upstream-tls')
      expect(client?.text).toContain('client certificate')
      expect(client?.text).toContain('pen opens this host for the rule GET')
    },
  )

  test('also over plain HTTP', async () => {
    world = await World.start({ allow: ['GET allowed.test:80/a/**'] })
    const client = await world.byName('allowed.test', 80)
    await client.send(get('/a/b')).heard('ok')
    await client.send(get('/b')).over()
    expect(world.up.requests).toEqual(['GET /a/b HTTP/1.1'])
    expect(client.text).toContain('403')
  })

  test('a host without such rules stays unopened beside it', async () => {
    await start({ allow: ['allowed.test:443', 'GET evil.test/x'] })
    const client = await world.byTls('allowed.test', 443, { ca: outside.certificate })
    await client?.send('GET /anything HTTP/1.1\r\nHost: whatever\r\n\r\n').heard('ok')
    expect(world.up.requests).toEqual(['GET /anything HTTP/1.1'])
  })

  test('an open tunnel ends when a rule about requests comes', async () => {
    await start({ allow: ['allowed.test:443'] })
    const client = await world.byTls('allowed.test', 443, { ca: outside.certificate })
    await client?.send(get('/x')).heard('ok')
    world.policy = policyOf({ allow: ['allowed.test:443'], deny: ['POST allowed.test/**'] })
    expect(world.gateway.policyChanged()).toBe(1)
  })
})

describe('a refusal of a host without any rule', () => {
  test('is a readable 403 inside TLS, and nothing leaves', async () => {
    await start()
    const client = await connect('evil.test')
    await client.send('GET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n').over()
    expect(client.text).toStartWith('HTTP/1.1 403 Forbidden\r\n')
    expect(client.text).toContain('pen allow evil.test:443')
    expect(world.evil.seen).toHaveLength(0)
    expect(world.lookups).toEqual([])
    expect(world.kinds()).toEqual(['connection-denied not-allowed'])
    const head = await connect('evil.test')
    await head.send('HEAD /x HTTP/1.1\r\nHost: evil.test\r\n\r\n').over()
    expect(head.text).toStartWith('HTTP/1.1 403')
    expect(head.text).toEndWith('\r\n\r\n')
  })

  test('is an alert for a program that does not trust the authority, or speaks no HTTP', async () => {
    await start({ limits: { lingerMs: 200 } })
    expect(await world.byTls('evil.test', 443, { ca: outside.certificate })).toBeUndefined()
    const silent = await connect('evil.test')
    await silent.over()
    expect(silent.closed || silent.ended).toBe(true)
    expect(silent.text).toBe('')
    const raw = await world.byName('evil.test', 443)
    await raw.send(Buffer.from('1603010005010000010000', 'hex')).over()
    expect(Buffer.from(raw.text, 'latin1').subarray(0, 1)).toEqual(Buffer.from([21]))
  })
})

test('a leaf is made once, names its host, and is of this authority', async () => {
  await start()
  const first = authority.leafFor(host('allowed.test'))
  expect(authority.leafFor(host('allowed.test'))).toBe(first)
  expect(first.cert).not.toBe(authority.leafFor(host('other.test')).cert)
  const far = Date.now() + 30 * 86_400_000
  expect(authority.leafFor(host('allowed.test'), far).cert).not.toBe(first.cert)
})

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { eventually } from '../../test/gateway/client.ts'
import { clientHello } from '../../test/gateway/hello.ts'
import { echo } from '../../test/gateway/recorder.ts'
import { policyOf, UP, World } from '../../test/gateway/world.ts'
import { Stopwatch } from '../../test/stopwatch.ts'

const GET = 'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n'
const ALERT_DENIED = '\x15\x03\x03\x00\x02\x02\x31'
const ALERT_ERROR = '\x15\x03\x03\x00\x02\x02\x50'

let world: World
beforeEach(async () => {
  world = await World.start({
    allow: ['allowed.test:443', 'allowed.test:80', 'allowed.test:22', '203.0.113.7:5432'],
  })
})
afterEach(() => world.close())

describe('P6 an allowed name is reached', () => {
  test('in plain HTTP, recorded before it is dialled and again when it ends', async () => {
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).heard('ok')
    expect(client.text).toStartWith('HTTP/1.1 200 OK\r\n')
    expect(world.kinds()).toEqual(['connection-allowed'])
    client.socket.end()
    await eventually(() => world.audit.length === 2)
    expect(world.audit[0]).toMatchObject({
      kind: 'connection-allowed',
      name: 'allowed.test',
      port: 80,
      rule: 'allowed.test:80',
    })
    expect(world.audit[1]).toMatchObject({
      kind: 'connection-closed',
      connection: 1,
      name: 'allowed.test',
      address: UP,
      bytesUp: world.up.text.length,
      reason: 'client',
    })
    expect(world.up.requests).toEqual(['GET / HTTP/1.1'])
  })

  test('in TLS, with its bytes as they came', async () => {
    world.up.behave = echo
    const hello = clientHello()
    const client = await world.byName('allowed.test', 443)
    await client.send(hello).until(() => client.text.length >= hello.length)
    expect(client.text).toBe(hello.toString('latin1'))
    expect(world.up.text).toBe(hello.toString('latin1'))
  })

  test('in any other protocol, client first', async () => {
    world.up.behave = echo
    const client = await world.byName('allowed.test', 22)
    await client.send('SSH-2.0-OpenSSH_9.2\r\n').heard('\n')
    expect(client.text).toBe('SSH-2.0-OpenSSH_9.2\r\n')
  })

  test('when the server speaks first, and is not kept waiting', async () => {
    world.up.greeting = 'SSH-2.0-server\r\n'
    world.up.behave = echo
    const watch = new Stopwatch()
    const client = await world.byName('allowed.test', 22)
    await client.heard('server')
    expect(watch.ms).toBeLessThan(250)
    await client.send('SSH-2.0-client\r\n').heard('client')
    expect(world.up.text).toBe('SSH-2.0-client\r\n')
  })

  test('by an address that a rule names', async () => {
    await world.recorder('203.0.113.7')
    const client = await world.byAddress('203.0.113.7', 5432)
    const recorder = world.recorders.get('203.0.113.7')
    if (recorder !== undefined) recorder.behave = echo
    await client.send('\0\0\0\x08\x04\xd2\x16\x2f').until(() => client.text.length === 8)
    expect(recorder?.text).toBe('\0\0\0\x08\x04\xd2\x16\x2f')
    expect(world.lookups).toEqual([])
  })

  test('a client that half-closes first still gets the rest', async () => {
    world.up.isPolite = false
    world.up.behave = (socket, _seen, text) => void setTimeout(() => socket.end(`late ${text}`), 30)
    const client = await world.byName('allowed.test', 22)
    client.send('\x01hello').socket.end()
    await client.over()
    expect(client.text).toBe('late \x01hello')
    expect(client.error).toBeUndefined()
    await eventually(() => world.kinds().includes('connection-closed client'))
  })
})

describe('P7 a refused name is not looked up, and nothing of it leaves', () => {
  test('in plain HTTP: 403 with the command that would allow it, and one record', async () => {
    const client = await world.byName('evil.test', 80)
    const watch = new Stopwatch()
    await client.send('GET /secret HTTP/1.1\r\nHost: evil.test\r\n\r\n').over()
    expect(watch.ms).toBeLessThan(250)
    expect(client.text).toStartWith('HTTP/1.1 403 Forbidden\r\n')
    expect(client.text).toContain('x-pen-denied: not-allowed\r\n')
    expect(client.text).toContain('pen allow evil.test:80')
    expect(client.text).not.toContain('secret')
    expect(world.kinds()).toEqual(['connection-denied not-allowed'])
    expect(world.lookups).toEqual([])
    expect(world.evil.seen).toEqual([])
  })

  test('in TLS: an access_denied alert', async () => {
    const client = await world.byName('evil.test', 443)
    await client.send(clientHello({ names: ['evil.test'] })).over()
    expect(client.text).toBe(ALERT_DENIED)
    expect(world.kinds()).toEqual(['connection-denied not-allowed'])
    expect(world.lookups).toEqual([])
  })

  test('in SSH: a disconnect with the reason and the command that would allow it', async () => {
    const client = await world.byName('evil.test', 22)
    await client.send('SSH-2.0-client\r\n').over()
    expect(client.text).toMatch(/^SSH-2\.0-pen\r\n/)
    const packet = Buffer.from(client.text.slice('SSH-2.0-pen\r\n'.length), 'latin1')
    // Length, padding of at least four and in all a multiple of eight; SSH_MSG_DISCONNECT with BY_APPLICATION.
    expect([packet.readUInt32BE(0) + 4, packet.length % 8]).toEqual([packet.length, 0])
    expect(packet.readUInt8(4)).toBeWithin(4, 12)
    expect([packet.readUInt8(5), packet.readUInt32BE(6)]).toEqual([1, 11])
    const text = packet.toString('latin1', 14, 14 + packet.readUInt32BE(10))
    expect(text).toStartWith('pen refused this connection: no rule allows evil.test.')
    expect(text).toEndWith('pen allow evil.test:22 (not-allowed)')
    expect(world.kinds()).toEqual(['connection-denied not-allowed'])
    expect(world.lookups).toEqual([])
  })

  test('in anything else: a reset', async () => {
    const client = await world.byName('evil.test', 22)
    await client.send('\x00\x01\x02').over()
    expect(client.wasReset).toBe(true)
    expect(world.kinds()).toEqual(['connection-denied not-allowed'])
  })

  test('in silence: a reset after half a second', async () => {
    const [began, watch] = [performance.now(), new Stopwatch()]
    const client = await world.byName('evil.test', 22)
    await client.over()
    expect(client.wasReset).toBe(true)
    expect(performance.now() - began).toBeGreaterThan(400)
    expect(watch.ms).toBeLessThan(900)
  })

  test('at another port than the one that is allowed', async () => {
    const client = await world.byName('allowed.test', 8080)
    await client.send(GET).over()
    expect(client.text).toContain('x-pen-denied: port-not-allowed')
    expect(world.up.seen).toEqual([])
  })

  test('by an address that no lookup returned', async () => {
    const client = await world.byAddress(UP, 80)
    await client.send(GET).over()
    expect(client.text).toContain('x-pen-denied: literal-not-allowed')
    expect(world.up.seen).toEqual([])
  })

  test('a client with a large upload can read the reply', async () => {
    const client = await world.byName('evil.test', 80)
    client.send('POST / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 1000000\r\n\r\n')
    client.send('x'.repeat(1_000_000))
    await client.over()
    expect(client.text).toStartWith('HTTP/1.1 403')
    expect(client.error).toBeUndefined()
  })
})

describe('P8 an allowed name does not lead to a private address', () => {
  for (const [what, addresses] of Object.entries({
    loopback: ['127.0.0.1'],
    private: ['10.1.2.3'],
    metadata: ['169.254.169.254'],
    'loopback as IPv6': ['::1'],
    'IPv4 in IPv6': ['::ffff:127.0.0.1'],
    'the synthetic range': ['198.18.0.1'],
    'several of them': ['0.0.0.0', '100.64.0.1', 'fd00::1'],
  }))
    test(`${what}: refused with a reply, and nothing is dialled`, async () => {
      world.zone['allowed.test'] = addresses
      const client = await world.byName('allowed.test', 80)
      await client.send(GET).over()
      expect(client.text).toStartWith('HTTP/1.1 403')
      expect(world.strays).toEqual([])
      expect(world.kinds()[0]).toBe('connection-allowed')
      expect(world.audit[1]).toMatchObject({ kind: 'connection-denied', connection: 1 })
      expect(world.audit.length).toBe(2)
    })

  test('a bad address among good ones is skipped', async () => {
    world.zone['allowed.test'] = ['127.0.0.1', UP, '::1']
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).heard('ok')
    expect(world.strays).toEqual([])
    expect(world.up.requests.length).toBe(1)
  })

  test('a name that answers differently each time is judged each time', async () => {
    let n = 0
    const answers = [UP, '127.0.0.1']
    Object.defineProperty(world.zone, 'allowed.test', { get: () => [answers[n++ % 2]] })
    for (let i = 0; i < 6; i++) {
      const client = await world.byName('allowed.test', 80)
      await client.send(GET).until(() => client.text.includes('ok'))
      client.socket.destroy()
    }
    expect(world.strays).toEqual([])
    expect(world.up.requests.length).toBe(3)
  })
})

describe('an upstream failure is not a denial', () => {
  test('a name without address: 502, and the audit says so', async () => {
    delete world.zone['allowed.test']
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).over()
    expect(client.text).toStartWith('HTTP/1.1 502')
    expect(client.text).toContain('x-pen-error: name-not-found')
    expect(client.text).not.toContain('x-pen-denied')
    expect(world.kinds()).toEqual(['connection-allowed', 'connection-failed name-not-found'])
  })

  test('a server that is down: an alert in TLS, a reset elsewhere', async () => {
    world.zone['allowed.test'] = ['203.0.113.99']
    const tls = await world.byName('allowed.test', 443)
    await tls.send(clientHello()).over()
    expect(tls.text).toBe(ALERT_ERROR)
    const other = await world.byName('allowed.test', 22)
    await other.send('\x01').over()
    expect(other.wasReset).toBe(true)
    expect(world.kinds().filter(kind => kind === 'connection-failed upstream-unreachable').length).toBe(2)
  })

  test('of two addresses the second one serves', async () => {
    world.zone['allowed.test'] = ['203.0.113.99', UP]
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).heard('ok')
    expect(world.strays).toEqual(['203.0.113.99:80'])
  })

  test('a reset in the middle of a tunnel is passed on as a reset', async () => {
    world.up.behave = socket => void socket.resetAndDestroy()
    const client = await world.byName('allowed.test', 22)
    await client.send('\x01').over()
    expect(client.wasReset).toBe(true)
  })
})

describe('the policy in force', () => {
  test('a narrowing ends what it no longer allows, and only that', async () => {
    world.up.behave = echo
    const ssh = await world.byName('allowed.test', 22)
    await ssh.send('\x01').heard('\x01')
    const tls = await world.byName('allowed.test', 443)
    await tls.send(clientHello()).heard('allowed.test')
    world.policy = policyOf({ allow: ['allowed.test:443'] })
    expect(world.gateway.policyChanged()).toBe(1)
    await ssh.over()
    expect(ssh.wasReset).toBe(true)
    expect(tls.closed).toBe(false)
    expect(world.kinds()).toContain('connection-closed policy')
  })

  test('a narrowing during the dial ends the connection before any client byte is sent', async () => {
    const { port } = world.up
    Object.defineProperty(world.up, 'port', {
      get: () => {
        // Checked, and about to be dialled.
        world.policy = policyOf({ deny: [UP] })
        world.gateway.policyChanged()
        return port
      },
    })
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).over()
    expect(client.text).toStartWith('HTTP/1.1 403')
    expect(world.kinds()).toEqual(['connection-allowed', 'connection-denied denied-by-rule'])
    expect(world.up.text).toBe('')
  })

  test('a widening applies to the next connection', async () => {
    world.policy = policyOf({ allow: ['evil.test:80'] })
    const client = await world.byName('evil.test', 80)
    await client.send('GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n').heard('ok')
    expect(world.evil.requests.length).toBe(1)
  })

  test('an idle tunnel ends', async () => {
    world.policy = policyOf({ allow: ['allowed.test:22'], idleMs: 100 })
    world.up.behave = echo
    const client = await world.byName('allowed.test', 22)
    await client.send('\x01').heard('\x01')
    await client.over(3000)
    expect(client.wasReset).toBe(true)
    expect(world.kinds()).toContain('connection-closed idle')
  })

  test('P18 no audit record, no connection', async () => {
    world.audits = false
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).over()
    expect(client.wasReset).toBe(true)
    expect(world.lookups).toEqual([])
    expect(world.up.seen).toEqual([])
    world.audits = true
    const twin = await world.byName('allowed.test', 80)
    await twin.send(GET).heard('ok')
    expect(world.up.requests.length).toBe(1)
  })
})

describe('P11 a client that was silent while its upstream was dialled', () => {
  const slowly = async (zone: readonly string[], bytes: string | Uint8Array) => {
    world.zone['allowed.test'] = zone
    const client = await world.byName('allowed.test', 80)
    await Bun.sleep(60)
    return await client.send(bytes).over()
  }

  test('learns in its own protocol that the name leads to a local address', async () => {
    const client = await slowly(['127.0.0.1'], GET)
    expect(client.text).toStartWith('HTTP/1.1 403 ')
    expect(world.kinds()).toEqual(['connection-allowed', 'connection-denied local-name'])
  })

  test('learns in its own protocol that the server cannot be reached', async () => {
    const client = await slowly(['203.0.113.99'], GET)
    expect(client.text).toStartWith('HTTP/1.1 502 ')
    expect((await slowly(['203.0.113.99'], clientHello())).text).toBe(ALERT_ERROR)
    expect((await slowly(['203.0.113.99'], '\x00\x01\x02')).wasReset).toBe(true)
  })
})

describe('bytes that programs sent just before the sandbox ended', () => {
  test('are sent to allowed servers, and the reply is not waited for', async () => {
    world.up.behave = () => undefined
    world.up.isPolite = false
    const size = 3_000_000
    const client = await world.byName('allowed.test', 22)
    client.send(Buffer.alloc(size)).socket.end()
    const watch = new Stopwatch()
    await world.gateway.finish(2000)
    await world.gateway.close()
    expect(watch.ms).toBeLessThan(1500)
    await eventually(() => world.up.seen[0]?.ended === true)
    expect(world.up.seen[0]).toMatchObject({ broken: false })
    expect(world.up.text.length).toBe(size)
  })

  test('are sent, or refused, even when the connection was not judged yet', async () => {
    const clients = [await world.byName('allowed.test', 80), await world.byName('evil.test', 80)]
    for (const client of clients) client.send(GET).socket.end()
    await world.gateway.finish(2000)
    await world.gateway.close()
    await eventually(() => world.up.requests.length === 1)
    expect(world.evil.seen).toEqual([])
    expect(new Set(world.kinds())).toEqual(
      new Set(['connection-allowed', 'connection-closed client', 'connection-denied not-allowed']),
    )
  })

  test('are dropped when the server does not read them in time', async () => {
    world.up.behave = socket => void socket.pause()
    const client = await world.byName('allowed.test', 22)
    client.send(Buffer.alloc(32_000_000)).socket.end()
    await eventually(() => world.up.seen.length === 1)
    const [began, watch] = [performance.now(), new Stopwatch()]
    await world.gateway.finish(300)
    expect(performance.now() - began).toBeGreaterThan(290)
    await world.gateway.close()
    expect(watch.ms).toBeLessThan(1500)
  })

  test('cost no time when there are none', async () => {
    const watch = new Stopwatch()
    await world.gateway.finish(2000)
    expect(watch.ms).toBeLessThan(50)
  })
})

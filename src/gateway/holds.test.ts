import { afterEach, describe, expect, test } from 'bun:test'
import { type Client, eventually } from '../../test/gateway/client.ts'
import { clientHello } from '../../test/gateway/hello.ts'
import { echo } from '../../test/gateway/recorder.ts'
import { policyOf, World, type WorldOptions } from '../../test/gateway/world.ts'
import { parseMillis } from '../base/quantity.ts'
import { parseHost } from '../policy/network/host.ts'
import type { OnceRules } from '../policy/network/once-rules.ts'
import { parsePort } from '../policy/network/port.ts'
import type { NetworkPolicy } from '../policy/policy.ts'

const GET = 'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n'
const ALERT_DENIED = '\x15\x03\x03\x00\x02\x02\x31'

let world: World
afterEach(() => world.close())

const holding = (options: WorldOptions = {}, extra: Partial<NetworkPolicy> = {}): NetworkPolicy =>
  policyOf(options, { ask: 'hold', hold: parseMillis('5s'), ...extra })

async function start(options: WorldOptions = {}, extra: Partial<NetworkPolicy> = {}): Promise<void> {
  world = await World.start(options)
  world.policy = holding(options, extra)
}

function change(policy: NetworkPolicy): void {
  world.policy = policy
  world.gateway.policyChanged()
}

const once = (allow: readonly string[], deny: readonly string[] = []): OnceRules => {
  const { allow: a, deny: d } = policyOf({ allow, deny })
  const mark = <T extends object>(item: T, i: number) => ({
    ...item,
    source: {
      layer: 'pen allow, one connection',
      place: undefined,
      temporary: { until: undefined, once: `g${i}` },
    },
  })
  return { allow: a.map(mark), deny: d.map((item, i) => mark(item, i + 100)) }
}

/** Asserts; `heard` only waits. */
async function hears(client: Client, text: string): Promise<void> {
  await client.heard(text)
  expect(client.text).toContain(text)
}

const isHeld = (count = 1) => eventually(() => world.gateway.stats().holding === count)

describe('P7 a connection that no rule names is held', () => {
  test('without a lookup and without a byte upstream, until it is allowed', async () => {
    await start()
    const client = await world.byName('evil.test', 80)
    client.send(GET)
    await isHeld()
    expect([world.lookups, world.strays, world.evil.text, client.text]).toEqual([[], [], '', ''])
    expect(world.kinds()).toEqual(['connection-held'])
    change(holding({ allow: ['evil.test:80'] }))
    await hears(client, 'ok')
    expect(world.lookups).toEqual(['evil.test'])
    expect(world.audit.slice(0, 2)).toMatchObject([
      { kind: 'connection-held', connection: 1, name: 'evil.test', port: 80 },
      { kind: 'connection-allowed', connection: 1, name: 'evil.test', rule: 'evil.test:80' },
    ])
  })

  test('in TLS, and a client that waits for the server as well', async () => {
    await start()
    world.evil.behave = echo
    const tls = await world.byName('evil.test', 443)
    const hello = clientHello({ names: ['evil.test'] })
    tls.send(hello)
    const silent = await world.byName('evil.test', 22)
    await isHeld(2)
    expect(world.evil.text).toBe('')
    change(holding({ allow: ['evil.test:443', 'evil.test:22'] }))
    await tls.until(() => tls.text.length >= hello.length)
    await hears(silent.send('SSH-2.0-x\r\n'), 'SSH-2.0-x')
    expect(world.lookups).toEqual(['evil.test', 'evil.test'])
  })

  test('through the proxy', async () => {
    await start()
    const client = await world.byProxy()
    client.send('CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n')
    await isHeld()
    expect(client.text).toBe('')
    change(holding({ allow: ['evil.test:443'] }))
    await hears(client, '200 Connection established')
  })

  test('and the user is not asked about a request that is refused in any case', async () => {
    await start()
    const client = await world.byName('evil.test', 80)
    await hears(client.send('GET / HTTP/1.1\r\nHost: other.test\r\n\r\n'), '403')
    expect(world.kinds()).toEqual(['connection-denied host-mismatch'])
    const tls = await world.byName('evil.test', 443)
    await hears(tls.send(clientHello({ names: ['other.test'] })), ALERT_DENIED)
    expect(world.kinds().at(-1)).toBe('connection-denied sni-mismatch')
  })
})

describe('P11 a held connection is refused in its own protocol, with the reason', () => {
  test('when a rule denies it', async () => {
    await start()
    const http = await world.byName('evil.test', 80)
    http.send(GET)
    const tls = await world.byName('evil.test', 443)
    tls.send(clientHello({ names: ['evil.test'] }))
    await isHeld(2)
    change(holding({ deny: ['evil.test'] }))
    await hears(http, 'x-pen-denied: denied-by-rule')
    await hears(tls, ALERT_DENIED)
    expect(world.kinds().toSorted((a, b) => a.localeCompare(b))).toEqual([
      'connection-denied denied-by-rule',
      'connection-denied denied-by-rule',
      'connection-held',
      'connection-held',
    ])
    expect([world.lookups, world.evil.text]).toEqual([[], ''])
  })

  test('when no answer comes in time', async () => {
    await start({}, { hold: parseMillis('80ms') })
    const client = await world.byName('evil.test', 80)
    await hears(client.send(GET), 'x-pen-denied: not-answered')
    expect(client.text).toContain('no one answered within 0.1 s')
    expect(client.text).toContain('pen allow evil.test:80')
    expect(world.audit).toMatchObject([
      { kind: 'connection-held', connection: 1 },
      { kind: 'connection-denied', connection: 1, reason: 'not-answered', fix: 'pen allow evil.test:80' },
    ])
    expect(world.lookups).toEqual([])
  })

  test('when the program hangs up, and when the gateway closes', async () => {
    await start()
    const client = await world.byName('evil.test', 80)
    client.send(GET)
    await isHeld()
    client.socket.destroy()
    await isHeld(0)
    await eventually(() => world.kinds().at(-1) === 'connection-denied hung-up')
    const other = await world.byName('evil.test', 80)
    other.send(GET)
    await isHeld()
    await world.gateway.close()
    expect(world.kinds().slice(-2)).toEqual(['connection-held', 'connection-denied hung-up'])
  })

  test('when the policy stops asking', async () => {
    await start()
    const client = await world.byName('evil.test', 80)
    client.send(GET)
    await isHeld()
    change(policyOf({}))
    await hears(client, 'x-pen-denied: not-allowed')
  })
})

describe('P8 the user is not asked', () => {
  test.each([
    ['127.0.0.1', 80],
    ['10.0.0.5', 443],
    ['192.168.1.1', 80],
    ['169.254.169.254', 80],
    ['169.254.7.7', 80],
    ['100.64.0.1', 80],
    ['::1', 80],
    ['fe80::1', 80],
    ['fd00:ec2::254', 80],
    ['::ffff:127.0.0.1', 80],
  ])('about the address %s', async (to, port) => {
    await start()
    await hears((await world.byAddress(to, port)).send(GET), '403')
    expect(world.kinds().some(kind => kind === 'connection-held')).toBe(false)
  })

  test.each(['host.pen.internal', 'localhost', 'metadata.google.internal', 'printer', 'nas.local'])(
    'about the name %s',
    async name => {
      await start()
      await hears((await world.byName(name, 80)).send(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`), '403')
      expect(world.kinds().some(kind => kind === 'connection-held')).toBe(false)
    },
  )

  test('about a host that the project file removes: no answer would count', async () => {
    const rules = policyOf({ allow: ['other.test:80'] }).allow.map(({ rule }) => rule)
    await start({}, { ceilings: [{ list: 'http', rules }] })
    await hears((await world.byName('evil.test', 80)).send(GET), 'x-pen-denied: not-allowed')
    ;(await world.byName('other.test', 80)).send('GET / HTTP/1.1\r\nHost: other.test\r\n\r\n')
    await isHeld()
  })

  test('about a denied host; but is asked about a public address', async () => {
    await start({ deny: ['evil.test'] })
    await hears((await world.byName('evil.test', 80)).send(GET), '403')
    expect(world.kinds()).toEqual(['connection-denied denied-by-rule'])
    ;(await world.byAddress('203.0.113.9', 80)).send('GET / HTTP/1.1\r\nHost: 203.0.113.9\r\n\r\n')
    await isHeld()
  })
})

describe('P13 held connections are limited', () => {
  test('in number, and per target; further ones are refused at once', async () => {
    await start({ limits: { maxHolding: 3, maxHoldingAlike: 2 } })
    const ask = async (name: string) => {
      const client = await world.byName(name, 80)
      client.send(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      return client
    }
    await ask('evil.test')
    await ask('evil.test')
    await isHeld(2)
    await hears(await ask('evil.test'), 'x-pen-denied: too-many-held')
    await ask('other.test')
    await isHeld(3)
    await hears(await ask('third.test'), 'x-pen-denied: too-many-held')
  })

  test('together with questions before a dial: each counts as a connection', async () => {
    await start({ limits: { maxHolding: 2, maxHoldingAlike: 2 } })
    const question = (name: string) => {
      const host = parseHost(name)
      const port = parsePort('80')
      if (!host.ok || !port.ok) throw new Error(name)
      let isGone = false
      const answer = world.gateway.ask(
        { to: { name: host.value }, port: port.value },
        { ms: 20_000, isGone: () => isGone },
      )
      return { answer, leave: () => (isGone = true) }
    }
    const first = question('evil.test')
    const second = question('other.test')
    const shown = (count: number) =>
      eventually(() => world.kinds().filter(kind => kind === 'connection-held').length === count)
    await shown(2)
    const third = question('third.test')
    await hears((await world.byName('evil.test', 80)).send(GET), 'x-pen-denied: too-many-held')
    third.leave()
    expect(await third.answer).toMatchObject({ allowed: false, shown: false })
    first.leave()
    expect(await first.answer).toMatchObject({ allowed: false, shown: true })
    ;(await world.byName('evil.test', 80)).send(GET)
    await shown(3)
    second.leave()
    await second.answer
  })

  test('in bytes: the gateway stops reading a program that keeps sending', async () => {
    await start()
    world.evil.behave = echo
    const client = await world.byName('evil.test', 80)
    client.send(`POST / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 8000000\r\n\r\n`)
    client.socket.write(Buffer.alloc(8_000_000, 120))
    await isHeld()
    await Bun.sleep(100)
    expect(client.socket.writableLength).toBeGreaterThan(0)
    expect(world.evil.text).toBe('')
  })
})

describe('P6 a grant for one connection', () => {
  test('lets one of twenty connections through, held or not, and is consumed once', async () => {
    const claimed: string[] = []
    const useUp = (grant: string) => claimed.push(grant) === 1
    for (const ask of ['never', 'hold'] as const) {
      claimed.length = 0
      await start({ useUp }, { ask, once: once(['evil.test:80']) })
      const clients = await Promise.all(Array.from({ length: 20 }, () => world.byName('evil.test', 80)))
      for (const client of clients) client.send(GET)
      await eventually(() => world.audit.length >= 20)
      expect(world.kinds().filter(kind => kind === 'connection-allowed')).toHaveLength(1)
      await eventually(() => clients.some(client => client.text.includes('200 OK')))
      expect(world.evil.requests).toHaveLength(1)
      expect(claimed).toEqual(['g0'])
      if (ask === 'hold') await isHeld(19)
      await world.close()
    }
    await start()
  })

  test('that another sandbox consumed opens nothing', async () => {
    await start({ useUp: () => false }, { ask: 'never', once: once(['evil.test:80']) })
    await hears((await world.byName('evil.test', 80)).send(GET), '403')
    expect([world.lookups, world.evil.text]).toEqual([[], ''])
  })

  test('is not consumed for an allowed host, and does not override a denial', async () => {
    const claimed: string[] = []
    const useUp = (grant: string) => claimed.push(grant) > 0
    await start({ allow: ['evil.test:80'], useUp }, { once: once(['evil.test:80']) })
    await hears((await world.byName('evil.test', 80)).send(GET), 'ok')
    change(holding({ deny: ['evil.test:80'] }, { once: once(['evil.test:80']) }))
    await hears((await world.byName('evil.test', 80)).send(GET), 'denied-by-rule')
    expect(claimed).toEqual([])
  })

  test('keeps its connection after it expires, but not after a denial', async () => {
    world = await World.start({ useUp: () => true })
    world.evil.behave = echo
    world.policy = holding({}, { once: once(['evil.test:22']) })
    const client = await world.byName('evil.test', 22)
    await hears(client.send('SSH-2.0-x\r\n'), 'x')
    change(holding())
    await hears(client.send('more\n'), 'more')
    change(holding({ deny: ['evil.test'] }))
    await eventually(() => world.kinds().at(-1) === 'connection-closed policy')
  })

  test('to an address is for that address', async () => {
    world = await World.start({ useUp: () => true })
    const recorder = await world.recorder('203.0.113.9')
    world.policy = holding({}, { ask: 'never', once: once(['203.0.113.9:22']) })
    const client = await world.byAddress('203.0.113.9', 22)
    recorder.behave = echo
    await hears(client.send('SSH-2.0-x\r\n'), 'x')
    expect(world.kinds()).toEqual(['connection-allowed'])
  })

  test('and a denial for one connection do not affect the next one', async () => {
    world = await World.start({ useUp: () => true })
    world.policy = policyOf({ allow: ['evil.test:80'] }, { once: once([], ['evil.test']) })
    await hears((await world.byName('evil.test', 80)).send(GET), 'denied-by-rule')
    await hears((await world.byName('evil.test', 80)).send(GET), 'ok')
  })
})

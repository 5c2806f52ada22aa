import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { clientHello, extension, records, serverName } from '../../../test/gateway/hello.ts'
import { echo } from '../../../test/gateway/recorder.ts'
import { World } from '../../../test/gateway/world.ts'
import { readClientHello } from './client-hello.ts'

const MAX = 65_536
const nameIn = (bytes: Uint8Array): unknown => {
  const reading = readClientHello(bytes, MAX)
  return reading.kind === 'hello' ? reading.serverName : reading.kind
}

describe('the name in a ClientHello', () => {
  test('is read as written', () => {
    expect(nameIn(clientHello())).toBe('allowed.test')
    expect(nameIn(clientHello({ names: ['A.Test.'] }))).toBe('A.Test.')
  })

  test('may be absent', () => {
    expect(nameIn(clientHello({ names: [] }))).toBeUndefined()
  })

  test('is found in every split into records', () => {
    for (const perRecord of [1, 2, 3, 4, 5, 50, 100])
      expect(nameIn(clientHello({ perRecord }))).toBe('allowed.test')
  })

  test('needs every byte, and reports the missing number', () => {
    const hello = clientHello({ perRecord: 40 })
    for (let length = 0; length < hello.length; length++) {
      const reading = readClientHello(hello.subarray(0, length), MAX)
      expect(reading.kind).toBe('more')
      if (reading.kind === 'more') expect(reading.need).toBeGreaterThan(length)
    }
  })

  test('is the outer one with Encrypted Client Hello', () => {
    const ech = extension(0xfe0d, Buffer.from('inner name under lock'))
    expect(nameIn(clientHello({ extensions: [ech] }))).toBe('allowed.test')
  })

  test('may be large, as with post-quantum keys', () => {
    expect(nameIn(clientHello({ padding: 40_000 }))).toBe('allowed.test')
  })
})

const message = (hello: Buffer): Buffer => hello.subarray(5)

describe('a ClientHello that servers could read differently is refused:', () => {
  const hello = message(clientHello())
  const cases: Readonly<Record<string, Buffer>> = {
    'two names': clientHello({ names: ['allowed.test', 'evil.test'] }),
    'the same extension twice': clientHello({ extensions: [serverName(['evil.test'])] }),
    'a name of another type': clientHello({ nameType: 1 }),
    'an empty name': clientHello({ names: [''] }),
    'more than 64 KiB': clientHello({ padding: 65_500, perRecord: 1000 }),
    'more than a thousand records': clientHello({ padding: 1000, perRecord: 1 }),
    'an empty record': Buffer.concat([Buffer.from([22, 3, 1, 0, 0]), clientHello()]),
    'a record longer than TLS allows': Buffer.concat([Buffer.from([22, 3, 1, 0x7f, 0xff]), Buffer.from([1])]),
    'an alert in between': Buffer.concat([
      records(hello.subarray(0, 20)),
      Buffer.from([21, 3, 1, 0, 2, 1, 0]),
      records(hello.subarray(20)),
    ]),
    'another message in the same record': records(Buffer.concat([hello, Buffer.from([1, 0, 0, 1, 0])])),
    'another first message': records(Buffer.from([2, 0, 0, 1, 0])),
    'extensions that end early': records(
      Buffer.concat([Buffer.from([1, 0, 0, hello.length - 4 + 1]), hello.subarray(4), Buffer.from([0])]),
    ),
    'another major version': Buffer.concat([Buffer.from([22, 2]), clientHello().subarray(2)]),
  }
  for (const [what, bytes] of Object.entries(cases))
    test(what, () => expect(readClientHello(bytes, MAX).kind).toBe('bad'))
})

describe('P9 the name in the ClientHello must be the allowed name', () => {
  const ALERT = '\x15\x03\x03\x00\x02\x02\x31'
  let world: World
  beforeEach(async () => {
    world = await World.start({
      allow: ['allowed.test:443', 'allowed.test:8443', 'other.test:443', '203.0.113.7:443'],
      limits: { headMs: 300 },
    })
    world.zone['other.test'] = ['198.51.100.10']
    world.up.behave = echo
  })
  afterEach(() => world.close())

  const refused: Readonly<Record<string, [string, Buffer]>> = {
    'another name': ['sni-mismatch', clientHello({ names: ['evil.test'] })],
    'another name that is allowed too': ['sni-mismatch', clientHello({ names: ['other.test'] })],
    'no name': ['sni-missing', clientHello({ names: [] })],
    'an address': ['sni-mismatch', clientHello({ names: ['198.51.100.10'] })],
    'two names': ['bad-hello', clientHello({ names: ['allowed.test', 'evil.test'] })],
    'a NUL in the name': ['sni-mismatch', clientHello({ names: ['allowed.test\0.evil.test'] })],
    'two dots at its end': ['sni-mismatch', clientHello({ names: ['allowed.test..'] })],
    'a name before': ['sni-mismatch', clientHello({ names: ['x.allowed.test'] })],
    'an SSL 2 hello': ['refused-protocol', Buffer.from([0x80, 0x2e, 1, 3, 1, 0, 21, 0, 0, 0, 16])],
    'a hello that stops': ['bad-hello', clientHello().subarray(0, 60)],
  }
  for (const [what, [reason, hello]] of Object.entries(refused))
    test(`${what}: refused with an alert, and nothing goes upstream`, async () => {
      const client = await world.byName('allowed.test', 443)
      await client.send(hello).over()
      expect(client.text).toBe(ALERT)
      expect(world.up.seen).toEqual([])
      expect(world.lookups).toEqual([])
      expect(world.kinds()).toEqual([`connection-denied ${reason}`])
    })

  test('a mismatch records the name as written', async () => {
    const client = await world.byName('allowed.test', 443)
    await client.send(clientHello({ names: ['evil.test\x1b[2J'] })).over()
    expect(world.audit[0]).toMatchObject({ name: 'allowed.test', raw: 'evil.test\x1b[2J' })
  })

  test('a mismatch after a long silence is refused too, though the upstream was dialled', async () => {
    const client = await world.byName('allowed.test', 443)
    await client.until(() => world.up.seen.length === 1)
    await client.send(clientHello({ names: ['evil.test'] })).over()
    expect(client.text).toBe(ALERT)
    expect(world.up.text).toBe('')
    expect(world.kinds()).toEqual([
      'connection-allowed',
      'connection-closed policy',
      'connection-denied sni-mismatch',
    ])
  })

  const accepted: Readonly<Record<string, Buffer>> = {
    'the name itself': clientHello(),
    'in capitals': clientHello({ names: ['ALLOWED.test'] }),
    'with a final dot': clientHello({ names: ['allowed.test.'] }),
    'in many records': clientHello({ perRecord: 7 }),
    'of 60 KiB': clientHello({ padding: 60_000 }),
  }
  for (const [what, hello] of Object.entries(accepted))
    test(`${what}: goes through unchanged, at every port`, async () => {
      for (const at of [443, 8443]) {
        const client = await world.byName('allowed.test', at)
        await client.send(hello).until(() => client.text.length === hello.length)
        client.socket.destroy()
      }
      expect(world.up.text).toBe(hello.toString('latin1').repeat(2))
    })

  test('byte by byte', async () => {
    const client = await world.byName('allowed.test', 443)
    const hello = clientHello()
    for (const byte of hello) {
      client.send(Uint8Array.of(byte))
      await new Promise(resolve => setImmediate(resolve))
    }
    await client.until(() => client.text.length === hello.length)
    expect(world.up.text).toBe(hello.toString('latin1'))
  })

  test('an address in a rule needs no name, but may not carry a refused one', async () => {
    const recorder = await world.recorder('203.0.113.7')
    const hello = clientHello({ names: [] })
    const client = await world.byAddress('203.0.113.7', 443)
    await client.send(hello).until(() => recorder.text.length === hello.length)
    expect(recorder.text).toBe(hello.toString('latin1'))
    const other = await world.byAddress('203.0.113.7', 443)
    await other.send(clientHello({ names: ['evil.test'] })).over()
    expect(other.text).toBe(ALERT)
    expect(recorder.seen.length).toBe(1)
    expect(world.kinds()).toContain('connection-denied sni-mismatch')
  })
})

describe('P9 the ClientHello after a HelloRetryRequest', () => {
  const record = (type: number, body: Buffer): Buffer =>
    Buffer.concat([Buffer.from([type, 3, 3, body.length >> 8, body.length & 0xff]), body])
  const serverHello = (random: Buffer): Buffer =>
    record(22, Buffer.concat([Buffer.from([2, 0, 0, 40, 3, 3]), random, Buffer.alloc(6)]))
  const RETRY = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex')
  const CHANGE = record(20, Buffer.from([1]))
  const EARLY = record(23, Buffer.alloc(300, 22))
  let world: World
  beforeEach(async () => {
    world = await World.start()
  })
  afterEach(() => world.close())

  const retried = async (second: Buffer, piece = 16_384): Promise<string> => {
    world.up.behave = (socket, seen) => {
      if (seen.text === clientHello().toString('latin1')) socket.write(serverHello(RETRY))
    }
    const client = await world.byName('allowed.test', 443)
    await client.send(clientHello()).heard(RETRY.toString('latin1'))
    for (let at = 0; at < second.length; at += piece) {
      client.send(second.subarray(at, at + piece))
      if (piece < second.length) await Bun.sleep(1)
    }
    await client.until(() => world.up.text.length >= clientHello().length + second.length, 300)
    return world.up.text.slice(clientHello().length)
  }

  for (const [what, before] of Object.entries({ nothing: Buffer.alloc(0), CHANGE, EARLY }))
    test(`may not name another server, with ${what} before it`, async () => {
      const evil = Buffer.concat([before, clientHello({ names: ['evil.test'] })])
      expect(await retried(evil)).not.toContain('evil.test')
      expect(world.kinds()).toContain('connection-denied sni-mismatch')
    })

  test('may not name another server when it comes before the request', async () => {
    const client = await world.byName('allowed.test', 443)
    client.send(Buffer.concat([clientHello(), CHANGE, clientHello({ names: ['evil.test'] })]))
    await client.over()
    expect(world.up.text).not.toContain('evil.test')
    expect(world.kinds()).toContain('connection-denied sni-mismatch')
  })

  test('passes with the same name, in any split', async () => {
    const second = Buffer.concat([CHANGE, EARLY, clientHello(), EARLY])
    expect(await retried(second, 97)).toBe(second.toString('latin1'))
    expect(world.kinds()).toEqual(['connection-allowed'])
  })

  test('is not expected after the server continues', async () => {
    world.up.behave = socket => void socket.write(serverHello(Buffer.alloc(32, 9)))
    const client = await world.byName('allowed.test', 443)
    await client.send(clientHello()).until(() => client.text.length > 40)
    // In TLS 1.2 an encrypted message may look like anything.
    const sealed = record(22, Buffer.concat([Buffer.from([1]), Buffer.alloc(40, 1)]))
    client.send(sealed)
    await client.until(() => world.up.text.length >= clientHello().length + sealed.length)
    expect(world.kinds()).toEqual(['connection-allowed'])
  })
})

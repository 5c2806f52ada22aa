import { afterEach, describe, expect, test } from 'bun:test'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import type { Client } from '../../../test/gateway/client.ts'
import { answer, serveHttp } from '../../../test/gateway/recorder.ts'
import { host, indexOf, policyOf, World, type WorldOptions } from '../../../test/gateway/world.ts'
import { Vault } from './vault.ts'

const authority = newAuthority('inside')
const outside = newAuthority('outside')
const REAL = 'sk-ant-api03-REALREALREALREAL0001'
const FAKE = 'sk-ant-api03-fakefakefakefake9999'
const KEY = { name: 'API_KEY', to: ['allowed.test:443'], in: ['header:x-api-key', 'header:authorization'] }
let world: World
afterEach(() => {
  // No record ever has the value.
  expect(JSON.stringify(world.audit)).not.toContain(REAL)
  return world.close()
})

async function start(options: WorldOptions = {}): Promise<void> {
  const bound = indexOf(options.secrets ?? [KEY])
  const vault = new Vault(bound, [{ name: 'API_KEY', value: REAL, placeholder: FAKE }])
  const allow = ['allowed.test:443', 'allowed.test:80', 'evil.test:80']
  world = await World.start({ allow, authority, outside, vault, secrets: [KEY], ...options })
}
async function connect(): Promise<Client> {
  const client = await world.byTls('allowed.test', 443)
  if (client === undefined) throw new Error('no handshake')
  return client
}
const get = (fields: string, path = '/v1'): string =>
  `GET ${path} HTTP/1.1\r\nHost: allowed.test\r\n${fields}\r\n\r\n`
const basic = (text: string): string => Buffer.from(text).toString('base64')

describe('a placeholder on its way to its host', () => {
  test('is replaced in the named fields, and the record has the name of the secret', async () => {
    await start()
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}\r\nAuthorization: Bearer ${FAKE}\r\nX-Other: y`)).heard('ok')
    expect(world.up.text).toContain(`X-Api-Key: ${REAL}\r\nAuthorization: Bearer ${REAL}\r\n`)
    expect(world.up.text).not.toContain(FAKE)
    expect(world.audit).toMatchObject([
      { kind: 'connection-allowed' },
      { kind: 'request-allowed', path: '/v1', secrets: ['API_KEY'] },
      { kind: 'request-answered' },
    ])
  })

  test('is replaced in Basic authentication, which is decoded and encoded again', async () => {
    await start()
    const client = await connect()
    await client.send(get(`Authorization: Basic ${basic(`me:${FAKE}`)}`)).heard('ok')
    expect(world.up.text).toContain(`Authorization: Basic ${basic(`me:${REAL}`)}\r\n`)
  })

  test('is replaced in a named parameter of the query, and the record has no query', async () => {
    await start({ secrets: [{ ...KEY, in: ['query:key'] }] })
    const client = await connect()
    await client.send(get('X: y', `/v1//x?a=b&key=${FAKE}&c`)).heard('ok')
    expect(world.up.requests).toEqual([`GET /v1/x?a=b&key=${REAL}&c HTTP/1.1`])
    expect(JSON.stringify(world.audit)).not.toContain('key=')
    await client.send(get('X: y', `/v1?other=${FAKE}`)).over()
    expect(client.text).toContain('x-pen-denied: secret-misplaced')
  })

  test('the record of a path that pen cannot read has no query, and the request is sent as it is', async () => {
    await start()
    const client = await connect()
    await client.send(get('X: y', '/a%zz?sig=own')).heard('ok')
    expect(world.up.requests).toEqual(['GET /a%zz?sig=own HTTP/1.1'])
    expect(world.audit).toMatchObject([{}, { kind: 'request-allowed', path: '/a%zz' }, {}])
    await client.send(get('X: y', `/a%zz?sig=own&key=${FAKE}`)).over()
    expect(client.text).toContain('x-pen-denied: secret-misplaced')
    expect(JSON.stringify(world.audit)).not.toContain('sig=')
  })

  test('a request without it is sent as it is, and its answer is searched too', async () => {
    await start()
    world.up.behave = serveHttp(answer(`earlier you sent ${REAL}`))
    const client = await connect()
    await client.send(get(`Authorization: Basic ${basic('me:x')}`)).heard('earlier')
    expect(world.up.text).toContain(`Authorization: Basic ${basic('me:x')}\r\n`)
    expect(client.text).toEndWith(`earlier you sent ${FAKE}`)
  })

  test('asks for an answer that can be searched: no compression, no other characters, no parts', async () => {
    await start()
    const client = await connect()
    const asked = 'Accept-Encoding: gzip, br\r\nAccept-Charset: utf-16\r\nRange: bytes=0-7'
    await client.send(get(`X-Api-Key: ${FAKE}\r\n${asked}`)).heard('ok')
    expect(world.up.text).toContain('Accept-Encoding: identity\r\n')
    expect(world.up.text).not.toMatch(/gzip|utf-16|Range/)
  })

  test('stops at once when the secret is removed', async () => {
    await start()
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`)).heard('ok')
    world.policy = policyOf({ allow: ['GET allowed.test/**'] })
    world.gateway.policyChanged()
    await client.send(get(`X-Api-Key: ${FAKE}`)).over()
    expect(client.text).toContain('x-pen-denied: secret-removed')
    expect(world.up.requests).toHaveLength(1)
  })

  test('never goes to the hosts of another secret that takes its name, and its own hosts stay', async () => {
    await start()
    world.zone['other.test'] = ['198.51.100.20']
    const other = await world.recorder('198.51.100.20', outside.leafFor(host('other.test')))
    const to = ['other.test:443', 'allowed.test:443']
    world.policy = policyOf({
      allow: to,
      secrets: [{ ...KEY, to, in: ['header:x-api-key', 'header:x-new'] }],
    })
    world.gateway.policyChanged()
    const stranger = await world.byTls('other.test', 443)
    await stranger?.send(get(`X-Api-Key: ${FAKE}`).replace('allowed.test', 'other.test')).over()
    expect(stranger?.text).toContain('x-pen-denied: secret-elsewhere')
    expect(other.text).toBe('')
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`)).heard('ok')
    expect(world.up.text).toContain(REAL)
    await client.send(get(`X-New: ${FAKE}`)).over()
    expect(client.text).toContain('x-pen-denied: secret-misplaced')
  })

  test('is searched for in answers after its removal, on new connections too', async () => {
    await start()
    world.up.behave = serveHttp(answer(`earlier you sent ${REAL}`))
    await (await connect()).send(get(`X-Api-Key: ${FAKE}`)).heard('earlier')
    world.policy = policyOf({ allow: ['allowed.test:443'] })
    world.gateway.policyChanged()
    const client = await connect()
    await client.send(get('X: y')).heard('earlier')
    expect(client.text).toEndWith(`earlier you sent ${FAKE}`)
  })

  test('a request that a rule refuses never has the value', async () => {
    await start({ allow: ['GET allowed.test/v1'] })
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`, '/v2')).over()
    expect(client.text).toContain('x-pen-denied: request-not-allowed')
    expect(world.up.text).toBe('')
  })
})

describe('a placeholder on any other way', () => {
  const refusals: Readonly<Record<string, readonly [string, string]>> = {
    'in another field': [get(`X-Other: ${FAKE}`), 'secret-misplaced'],
    'in the query': [get('X: y', `/v1?key=${FAKE}`), 'secret-misplaced'],
    'in the path, encoded': [get('X: y', `/${FAKE.replaceAll('k', '%6b')}`), 'secret-misplaced'],
  }
  for (const [what, [head, reason]] of Object.entries(refusals))
    test(`${what}: refused, and recorded`, async () => {
      await start()
      const client = await connect()
      await client.send(head).over()
      expect(client.text).toContain(`x-pen-denied: ${reason}`)
      expect(world.up.text).toBe('')
      expect(world.kinds()).toContain(`connection-denied ${reason}`)
    })

  test('another host, another port, no TLS: refused', async () => {
    await start()
    for (const [name, at] of [
      ['evil.test', 80],
      ['allowed.test', 80],
    ] as const) {
      const client = await world.byName(name, at)
      await client.send(`GET / HTTP/1.1\r\nHost: ${name}\r\nX-Api-Key: ${FAKE}\r\n\r\n`).over()
      expect(client.text).toContain('x-pen-denied: secret-elsewhere')
    }
    const plain = await world.byName('allowed.test', 443)
    await plain.send(get(`X-Api-Key: ${FAKE}`)).over()
    expect(plain.text).toContain('x-pen-denied: secret-elsewhere')
    const hidden = await world.byName('evil.test', 80)
    await hidden
      .send(`GET / HTTP/1.1\r\nHost: evil.test\r\nAuthorization: Basic ${basic(`a:${FAKE}`)}\r\n\r\n`)
      .over()
    expect(hidden.text).toContain('x-pen-denied: secret-elsewhere')
    expect(world.evil.text + world.up.text).toBe('')
  })

  test('another path than the one that the secret is bound to: refused', async () => {
    await start({ secrets: [{ ...KEY, to: ['allowed.test:443/v1/**'] }] })
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`, '/v1/x')).heard('ok')
    await client.send(get(`X-Api-Key: ${FAKE}`, '/v2/x')).over()
    expect(client.text).toContain('x-pen-denied: secret-elsewhere')
    expect(world.up.requests).toEqual(['GET /v1/x HTTP/1.1'])
    const named = await connect()
    await named.send(get(`X-Api-Key: ${FAKE}\r\nX-Original-URL: /v2/x`, '/v1/x')).over()
    expect(named.text).toContain('x-pen-denied: bad-request')
    const copied = await connect()
    await copied.send(get(`X-Api-Key: ${FAKE}\r\nX-Amz-Copy-Source: /v2/x`, '/v1/x')).over()
    expect(copied.text).toContain('x-pen-denied: bad-request')
    expect(world.up.requests).toHaveLength(1)
    const method = await connect()
    await method.send(get(`X-Api-Key: ${FAKE}\r\nX-HTTP-Method-Override: PUT`, '/v1/x')).heard('ok')
  })

  test('plain HTTP works where the user says so', async () => {
    await start({ secrets: [{ ...KEY, to: ['http://evil.test'] }] })
    const client = await world.byName('evil.test', 80)
    await client.send(`GET / HTTP/1.1\r\nHost: evil.test\r\nX-Api-Key: ${FAKE}\r\n\r\n`).heard('ok')
    expect(world.evil.text).toContain(REAL)
  })
})

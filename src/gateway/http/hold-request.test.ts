import { afterEach, describe, expect, test } from 'bun:test'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import { type Client, eventually } from '../../../test/gateway/client.ts'
import { policyOf, World } from '../../../test/gateway/world.ts'
import { parseMillis } from '../../base/quantity.ts'
import type { NetworkPolicy } from '../../policy/policy.ts'

const authority = newAuthority('inside')
const outside = newAuthority('outside')
let world: World
afterEach(() => world.close())

const holding = (
  allow: readonly string[],
  extra: Partial<NetworkPolicy> = {},
  deny: readonly string[] = [],
) => policyOf({ allow, deny }, { ask: 'hold', hold: parseMillis('5s'), ...extra })

async function start(extra: Partial<NetworkPolicy> = {}, deny: readonly string[] = []): Promise<Client> {
  world = await World.start({ allow: ['GET allowed.test/a'], authority, outside })
  world.policy = holding(['GET allowed.test/a'], extra, deny)
  const client = await world.byTls('allowed.test', 443)
  if (client === undefined) throw new Error('no handshake')
  return client
}

function change(policy: NetworkPolicy): void {
  world.policy = policy
  world.gateway.policyChanged()
}

const send = (method: string, path: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: allowed.test\r\n\r\n`
const isHeld = (count = 1) => eventually(() => world.gateway.stats().holding === count)

describe('P7 a request that no rule names is held', () => {
  test('with its method and path, and sent when the user allows it', async () => {
    const client = await start()
    await client.send(send('GET', '/a')).heard('ok')
    client.send(send('DELETE', '/b//c?x=y'))
    await isHeld()
    expect(world.up.requests).toEqual(['GET /a HTTP/1.1'])
    expect(world.audit.at(-1)).toMatchObject({ kind: 'connection-held', method: 'DELETE', path: '/b/c' })
    expect(JSON.stringify(world.audit)).not.toContain('x=y')
    change(holding(['GET allowed.test/a', 'DELETE allowed.test/b/c']))
    await eventually(() => world.up.requests.length === 2)
    expect(world.up.requests[1]).toBe('DELETE /b/c?x=y HTTP/1.1')
    // The record of the hold and that of the outcome have one number.
    const [held] = world.audit.filter(({ kind }) => kind === 'connection-held')
    const allowed = world.audit.filter(({ kind }) => kind === 'request-allowed').at(-1)
    expect(allowed).toMatchObject({ path: '/b/c', connection: (held as { connection: number }).connection })
  })

  test('and a rule for another request does not end the wait', async () => {
    const client = await start()
    client.send(send('POST', '/b'))
    await isHeld()
    change(holding(['GET allowed.test/a', 'GET allowed.test/b', 'POST allowed.test/c']))
    await Bun.sleep(50)
    await isHeld()
    expect(world.up.requests).toEqual([])
    change(holding(['GET allowed.test/a'], {}, ['POST allowed.test/b']))
    await client.over()
    expect(client.text).toContain('x-pen-denied: denied-by-rule')
    expect(world.up.requests).toEqual([])
  })

  test('and refused when no one answers, or the program goes away', async () => {
    const client = await start({ hold: parseMillis('200ms') })
    await client.send(send('POST', '/b')).over()
    expect(client.text).toContain('x-pen-denied: not-answered')
    expect(client.text).toContain("pen allow 'POST allowed.test:443/b'")
    const gone = await world.byTls('allowed.test', 443)
    gone?.send(send('POST', '/b'))
    await isHeld()
    gone?.socket.destroy()
    await isHeld(0)
    expect(world.up.requests).toEqual([])
  })

  test('and not when a rule denies it, when its path is odd, or above a ceiling', async () => {
    const denied = await start({}, ['POST allowed.test/b'])
    await denied.send(send('POST', '/b/')).over()
    expect(denied.text).toContain('x-pen-denied: denied-by-rule')
    await world.close()
    const odd = await start()
    await odd.send(send('POST', "/';x")).over()
    expect(odd.text).toContain('x-pen-denied: request-not-allowed')
    await world.close()
    const { allow } = policyOf({ allow: ['GET allowed.test/**'] })
    const ceiling = { list: 'http' as const, rules: allow.map(({ rule }) => rule) }
    const above = await start({ ceilings: [ceiling] })
    await above.send(send('POST', '/b')).over()
    expect(above.text).toContain('x-pen-denied: request-not-allowed')
    expect(world.kinds()).not.toContain('connection-held')
  })
})

import { afterEach, describe, expect, test } from 'bun:test'
import { type Client, eventually } from '../../test/gateway/client.ts'
import { echo } from '../../test/gateway/recorder.ts'
import { World, type WorldOptions } from '../../test/gateway/world.ts'
import { Stopwatch } from '../../test/stopwatch.ts'

const GET = 'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n'
let world: World
afterEach(() => world.close())
const start = async (limits: WorldOptions['limits']): Promise<void> => {
  world = await World.start({ allow: ['allowed.test:80', 'allowed.test:22'], ...(limits && { limits }) })
}
const many = <T>(count: number, make: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, make))
/** Connections in the records of one limit. The gateway writes a record each second, so a slow test gets several. */
const counted = (limit: string): number => {
  const hits = world.audit.filter(event => event.kind === 'limit-hit')
  expect(hits.filter(hit => hit.limit !== limit)).toEqual([])
  return hits.reduce((sum, hit) => sum + Number(hit.value), 0)
}

describe('a sandbox cannot exceed the limits of the host:', () => {
  test('connections beyond the limit are reset and recorded once, and later ones succeed', async () => {
    await start({ maxConnections: 3 })
    world.up.behave = echo
    const held = await many(3, () => world.byName('allowed.test', 22))
    for (const client of held) await client.send('\x01').heard('\x01')
    const extra = await many(5, () => world.byName('allowed.test', 22))
    for (const client of extra) expect((await client.over()).wasReset).toBe(true)
    expect(world.up.seen.length).toBe(3)
    expect(world.gateway.stats()).toMatchObject({ open: 3, limited: 5 })
    held[0]?.socket.destroy()
    await eventually(() => world.gateway.stats().open === 2)
    const next = await world.byName('allowed.test', 22)
    await next.send('\x01').heard('\x01')
    await eventually(() => counted('connections') === 5)
  })

  test('silent clients block others only for a short time', async () => {
    await start({ maxUndecided: 2, headMs: 500 })
    const silent = await many(2, () => world.byProxy())
    const late = await world.byProxy()
    expect((await late.over()).wasReset).toBe(true)
    await Promise.all(silent.map(client => client.over()))
    await eventually(() => world.gateway.stats().undecided === 0)
    const twin = await world.byProxy()
    await twin.send('GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n').heard('ok')
    expect(world.up.requests.length).toBe(1)
  })

  test('a head that arrives byte by byte times out', async () => {
    await start({ headMs: 200 })
    const client = await world.byName('allowed.test', 80)
    client.send('GET / HTTP/1.1\r\n')
    const watch = new Stopwatch()
    while (!client.ended && !client.closed && watch.ms < 2000) {
      client.send('X')
      await Bun.sleep(10)
    }
    expect(watch.ms).toBeLessThan(600)
    expect(client.text).toStartWith('HTTP/1.1 408')
    expect(world.up.seen).toEqual([])
  })

  test('denials beyond their rate are closed and counted, without a record each', async () => {
    await start({ denialBurst: 5, denialsPerSecond: 0.01 })
    const clients: Client[] = []
    for (let i = 0; i < 20; i++) clients.push((await world.byName('evil.test', 80)).send(GET))
    await Promise.all(clients.map(client => client.over()))
    expect(clients.filter(client => client.text.startsWith('HTTP/1.1 403')).length).toBe(5)
    expect(world.audit.filter(event => event.kind === 'connection-denied').length).toBe(5)
    await eventually(() => counted('denials-per-second') === 15)
    expect(world.evil.seen).toEqual([])
  })

  test('dials are limited in parallel, and all succeed in the end', async () => {
    await start({ maxDialling: 2 })
    world.up.behave = echo
    const clients = await many(20, () => world.byName('allowed.test', 22))
    for (const client of clients) client.send('\x01')
    await Promise.all(clients.map(client => client.heard('\x01')))
    expect(world.up.seen.length).toBe(20)
    expect(world.gateway.stats().dialling).toBe(0)
  })

  test('a peer that does not read costs no memory', async () => {
    await start({})
    world.up.behave = socket => void socket.pause()
    const client = await world.byName('allowed.test', 22)
    client.send('\x01')
    await eventually(() => world.up.seen.length === 1)
    await Bun.sleep(20)
    const before = process.memoryUsage.rss()
    const block = Buffer.alloc(1_048_576, 1)
    let accepted = 0
    for (let i = 0; i < 200 && client.socket.writableLength < 4_194_304; i++) {
      client.send(block)
      await Bun.sleep(1)
      accepted++
    }
    // What the kernel buffers on both sides, not the 200 MiB that were sent.
    expect(accepted).toBeLessThan(100)
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 1_048_576)
  }, 10_000)

  test('peers that do not read cost no more memory than the limit: the newest end, and are recorded', async () => {
    await start({ maxBuffered: 524_288 })
    world.up.behave = socket => void socket.write(Buffer.alloc(8_388_608))
    const reader = await world.byName('allowed.test', 22)
    const idle = await many(12, () => world.byName('allowed.test', 22))
    for (const client of idle) client.send('\x01').socket.pause()
    const held = () => idle.filter(client => !client.closed).length
    await eventually(() => world.gateway.stats().limited >= 6, 5000)
    await eventually(() => world.kinds().includes('connection-closed limit'))
    expect(world.kinds().filter(kind => kind === 'connection-closed limit').length).toBe(
      world.gateway.stats().limited,
    )
    expect(world.gateway.stats().open).toBeLessThanOrEqual(held() + 1)
    world.up.behave = echo
    await reader.send('\x01still here').heard('still here')
    await eventually(() =>
      world.audit.some(event => event.kind === 'limit-hit' && event.limit === 'held-bytes'),
    )
  }, 10_000)

  test('a thousand connections are all served, recorded and closed', async () => {
    await start({})
    for (let i = 0; i < 20; i++) {
      const clients = await many(50, () => world.byName('allowed.test', 80))
      for (const client of clients) client.send(GET)
      await Promise.all(clients.map(client => client.heard('ok')))
      for (const client of clients) client.socket.destroy()
      await eventually(() => world.gateway.stats().open === 0)
    }
    expect(world.gateway.stats()).toMatchObject({
      open: 0,
      undecided: 0,
      dialling: 0,
      allowed: 1000,
      denied: 0,
    })
    await eventually(() => world.audit.length === 2000)
    expect(world.up.requests.length).toBe(1000)
  }, 60_000)
})

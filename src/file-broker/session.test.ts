import { describe, expect, test } from 'bun:test'
import { readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { BrokerWorld } from '../../test/file-broker/world.ts'
import { encodeFrame } from '../protocol/frame.ts'

const LARGE = 4 * 1024 * 1024

describe('in the middle of a transfer', () => {
  /** A reader that has received the first window and waits. */
  const begun = async (world: BrokerWorld, path: string) => {
    const client = world.raw()
    client.send({ kind: 'request', channel: 1, request: { op: 'read', path, from: 0, length: null } })
    for (let i = 0; i < 4; i++) await client.reply(reply => reply.kind === 'data')
    return client
  }

  test('a revoked grant ends it with that reason, whether or not the client reads', async () => {
    await using world = await BrokerWorld.start()
    const client = await begun(world, world.file('f', Buffer.alloc(LARGE)))
    world.grants = []
    expect(await client.reply(reply => reply.kind === 'refused')).toMatchObject({
      refusal: { reason: 'revoked' },
    })
    expect(world.kinds()).toEqual(['broker-allowed', 'grants-changed', 'broker-ended revoked'])
    expect(world.events.at(-1)).toMatchObject({ bytes: 4 * 65_536 })
    client.socket.destroy()
  })

  test('an expired grant ends it with that reason', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('f', Buffer.alloc(LARGE))
    world.grants = [world.grant(world.open, { until: Date.now() + 300 })]
    const client = await begun(world, path)
    expect(await client.reply(reply => reply.kind === 'refused')).toMatchObject({
      refusal: { reason: 'expired' },
    })
    expect(await world.reason(world.read(path))).toBe('expired')
    client.socket.destroy()
  })

  test('a narrowed grant ends transfers and writes that it no longer covers', async () => {
    await using world = await BrokerWorld.start()
    world.grants = [world.grant(world.open, { write: true })]
    const path = world.file('f', 'old')
    const client = world.raw()
    client.send({ kind: 'request', channel: 1, request: { op: 'write', path, executable: false } })
    client.send({ kind: 'data', channel: 1, bytes: Buffer.alloc(65_536) })
    await client.reply(reply => reply.kind === 'window')
    world.grants = [world.grant(world.open)]
    client.send({ kind: 'complete', channel: 1 })
    expect(await client.reply(reply => reply.kind === 'refused')).toMatchObject({
      refusal: { reason: 'revoked' },
    })
    expect(readFileSync(path, 'utf8')).toBe('old')
    client.socket.destroy()
  })

  test('the end of the sandbox ends it, and is recorded before the broker closes', async () => {
    const events = await (async () => {
      await using world = await BrokerWorld.start()
      world.grants = [world.grant(world.open, { write: true })]
      await begun(world, world.file('f', Buffer.alloc(LARGE)))
      const path = world.file('g', 'old')
      const writer = world.raw()
      writer.send({ kind: 'request', channel: 1, request: { op: 'write', path, executable: false } })
      writer.send({ kind: 'data', channel: 1, bytes: Buffer.alloc(65_536) })
      await writer.reply(reply => reply.kind === 'window')
      return world
    })()
    expect(events.kinds().filter(kind => kind.startsWith('broker-ended')).length).toBe(2)
  })

  test('a replaced file is sent as it was; a truncated one ends as changed', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('f', Buffer.alloc(LARGE, 'a'))
    const client = await begun(world, path)
    writeFileSync(`${path}.new`, Buffer.alloc(LARGE, 'b'))
    renameSync(`${path}.new`, path)
    client.send({ kind: 'window', channel: 1, bytes: 65_536 })
    expect(await client.reply(reply => reply.kind === 'data')).toMatchObject({
      bytes: Buffer.alloc(65_536, 'a'),
    })
    const other = world.file('g', Buffer.alloc(LARGE))
    const second = await begun(world, other)
    truncateSync(other, 10)
    second.send({ kind: 'window', channel: 1, bytes: 65_536 })
    expect(await second.reply(reply => reply.kind === 'refused')).toMatchObject({
      refusal: { reason: 'changed' },
    })
    for (const { socket } of [client, second]) socket.destroy()
  })
})

describe('many clients', () => {
  test('twenty parallel transfers complete, while others do not read', async () => {
    await using world = await BrokerWorld.start()
    const content = Buffer.alloc(LARGE).map((_, i) => i * 13)
    const path = world.file('f', content)
    const slow = Array.from({ length: 20 }, () => world.raw())
    for (const client of slow) {
      client.socket.pause()
      client.send({ kind: 'request', channel: 1, request: { op: 'read', path, from: 0, length: null } })
    }
    const all = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const pieces: Buffer[] = []
        await world.ask(client => client.read(path, () => bytes => void pieces.push(Buffer.from(bytes))))
        return Buffer.concat(pieces).equals(content)
      }),
    )
    expect(all).toEqual(Array.from({ length: 20 }, () => true))
    for (const { socket } of slow) socket.destroy()
  }, 20_000)

  test('beyond the limit are refused, and a stalled one ends', async () => {
    await using world = await BrokerWorld.start({ limits: { maxRequests: 2, stallMs: 200, tickMs: 10 } })
    const path = world.file('f', Buffer.alloc(LARGE))
    const client = world.raw()
    for (const channel of [1, 2, 3])
      client.send({ kind: 'request', channel, request: { op: 'read', path, from: 0, length: null } })
    expect(await client.reply(({ channel, kind }) => channel === 3 && kind === 'refused')).toMatchObject({
      refusal: { reason: 'busy' },
    })
    for (const of of [1, 2])
      expect(await client.reply(({ channel, kind }) => channel === of && kind === 'refused')).toMatchObject({
        refusal: { reason: 'stalled' },
      })
    client.socket.destroy()
    expect(await world.ask(one => one.stat(path))).toMatchObject({ size: LARGE })
  })

  test('that ask too fast wait; each request is served and recorded', async () => {
    await using world = await BrokerWorld.start({ limits: { requestBurst: 5, requestsPerSecond: 100 } })
    const path = world.file('f', 'x')
    const began = performance.now()
    const client = world.raw()
    for (let channel = 1; channel <= 25; channel++)
      client.send({ kind: 'request', channel, request: { op: 'stat', path } })
    await client.reply(({ channel, kind }) => channel === 25 && kind === 'done')
    expect(performance.now() - began).toBeGreaterThan(150)
    expect(world.kinds().filter(kind => kind === 'broker-allowed').length).toBe(25)
    client.socket.destroy()
  })

  test('that list large directories wait in the rate limit; small listings and the supervisor do not', async () => {
    await using world = await BrokerWorld.start({
      limits: { requestBurst: 12, requestsPerSecond: 100, namesPerTurn: 10 },
    })
    for (let i = 0; i < 200; i++) world.file(`large/${i}`, '')
    world.file('small/f', '')
    const began = performance.now()
    const small = await world.ask(client => client.list(`${world.open}/small`, 0))
    expect(small.entries).toEqual([{ name: 'f', kind: 'file' }])
    let turns = 0
    const ticking = setInterval(() => turns++, 1)
    const large = await world.ask(client => client.list(`${world.open}/large`, 0))
    clearInterval(ticking)
    expect(large.entries.length).toBe(200)
    // One token for the request and twenty for its names, of which ten were left in the burst.
    expect(performance.now() - began).toBeGreaterThan(80)
    expect(turns).toBeGreaterThan(5)
  })

  test('that send garbage are disconnected, and others are not', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('f', 'x')
    const bystander = await world.client()
    const stat = { op: 'stat' as const, path }
    for (const nonsense of [
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      encodeFrame(1, 1, Buffer.from('{"op":"delete","path":"/"}')),
      encodeFrame(1, 1, Buffer.from('{"op":"stat","path":"/x","more":1}')),
      encodeFrame(1, 0, Buffer.from('{"op":"grants"}')),
      encodeFrame(4, 7, Buffer.alloc(8)),
      encodeFrame(200, 1),
    ]) {
      const client = world.raw()
      client.socket.write(nonsense)
      await client.closed()
    }
    const twice = world.raw()
    twice.send({ kind: 'request', channel: 3, request: stat }, { kind: 'request', channel: 3, request: stat })
    await twice.closed()
    expect(await bystander.stat(path)).toMatchObject({ size: 1 })
    bystander.close()
  })
})

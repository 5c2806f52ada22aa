import { describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { BrokerWorld, SECRET } from '../../test/file-broker/world.ts'

const LARGE = 4 * 1024 * 1024

describe('a granted directory', () => {
  test('is read, listed and inspected; each access is recorded before a byte is sent', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('a/b.txt', 'content')
    expect(await world.read(path)).toBe('content')
    expect(await world.ask(client => client.stat(path))).toMatchObject({
      kind: 'file',
      size: 7,
      writable: false,
    })
    const { entries } = await world.ask(client => client.list(world.open, 0))
    expect(entries).toEqual([{ name: 'a', kind: 'directory' }])
    expect(await world.ask(client => client.grants())).toEqual([
      { path: world.open, kind: 'directory', write: false, until: null },
    ])
    expect(world.kinds()).toEqual(['broker-allowed', 'broker-ended done', 'broker-allowed', 'broker-allowed'])
    expect(world.events[0]).toMatchObject({ op: 'read', path, rule: world.open, request: 1 })
    expect(world.events[1]).toMatchObject({ bytes: 7, request: 1 })
  })

  test('is read in parts, of any size', async () => {
    await using world = await BrokerWorld.start()
    const content = Buffer.alloc(LARGE).map((_, i) => i * 7)
    const path = world.file('large', content)
    const part = async (from: number, length: number | null) => {
      const pieces: Buffer[] = []
      await world.ask(client =>
        client.read(path, () => bytes => void pieces.push(Buffer.from(bytes)), { from, length }),
      )
      return Buffer.concat(pieces)
    }
    expect((await part(0, null)).equals(content)).toBe(true)
    expect((await part(100_000, 300_001)).equals(content.subarray(100_000, 400_001))).toBe(true)
    expect((await part(LARGE, null)).length).toBe(0)
    expect((await part(LARGE + 5, 5)).length).toBe(0)
  })

  test('is listed page by page, links as links, up to the limit', async () => {
    await using world = await BrokerWorld.start({ limits: { pageNames: 3, maxNames: 8 } })
    for (let i = 0; i < 4; i++) world.file(`f${i}`, '')
    symlinkSync('/etc', join(world.open, 'link'))
    world.file('not a\nname', '')
    const first = await world.ask(client => client.list(world.open, 0))
    expect(first.entries.map(({ name }) => name)).toEqual(['f0', 'f1', 'f2'])
    const second = await world.ask(client => client.list(world.open, first.next ?? 0))
    expect(second).toEqual({
      entries: [
        { name: 'f3', kind: 'file' },
        { name: 'link', kind: 'link' },
      ],
      next: null,
      truncated: false,
    })
    for (let i = 4; i < 9; i++) world.file(`f${i}`, '')
    expect((await world.ask(client => client.list(world.open, 0))).truncated).toBe(true)
  })
})

describe('refused, with a record and no byte', () => {
  test('is a path without a grant, whether or not it exists', async () => {
    await using world = await BrokerWorld.start()
    for (const path of [
      join(world.closed, 'secret'),
      join(world.closed, 'absent'),
      '/etc/passwd',
      world.root,
    ]) {
      world.events.length = 0
      expect(await world.reason(world.read(path))).toBe('not-granted')
      expect(world.events).toMatchObject([
        { kind: 'broker-denied', op: 'read', path, reason: 'not-granted', fix: `pen grant ${path}` },
      ])
    }
  })

  test('is every unusual spelling of a path', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('f', 'x')
    const name = 'n'.repeat(256)
    for (const odd of [
      'f',
      '',
      '/',
      `${world.open}/../closed/secret`,
      `${world.open}/./f`,
      `${world.open}//f`,
      `${path}/`,
      `${path}\0`,
      `${world.open}/\n`,
      `${world.open}/\ud800`,
      `${world.open}/${name}`,
      `${world.open}${'/d'.repeat(2100)}`,
    ])
      expect([odd, await world.reason(world.read(odd))]).toEqual([odd, 'bad-path'])
    expect(new Set(world.kinds())).toEqual(new Set(['broker-denied bad-path']))
    expect(await world.read(path)).toBe('x')
  })

  test('is a link, at the end or on the way; its target is served under its own name', async () => {
    await using world = await BrokerWorld.start()
    symlinkSync(join(world.closed, 'secret'), join(world.open, 'file'))
    symlinkSync(world.closed, join(world.open, 'dir'))
    symlinkSync('/proc/self/fd', join(world.open, 'magic'))
    const real = world.file('real', 'mine')
    symlinkSync(real, join(world.open, 'inside'))
    for (const name of ['file', 'dir/secret', 'magic/0', 'inside'])
      expect([name, await world.reason(world.read(join(world.open, name)))]).toEqual([name, 'link'])
    expect(new Set(world.kinds())).toEqual(new Set(['broker-denied link']))
    expect(await world.read(real)).toBe('mine')
  })

  test('is a pipe, a socket or a device, which pen does not open; and a directory as a file', async () => {
    await using world = await BrokerWorld.start()
    const fifo = join(world.open, 'fifo')
    expect(spawnSync('mkfifo', [fifo]).status).toBe(0)
    const server = createServer().listen(join(world.open, 'socket'))
    await new Promise(resolve => server.once('listening', resolve))
    for (const name of ['fifo', 'socket'])
      expect(await world.reason(world.read(join(world.open, name)))).toBe('not-regular')
    world.grants = [...world.grants, world.grant('/dev/null', { path: '/dev/null' as never, kind: 'file' })]
    expect(await world.reason(world.read('/dev/null'))).toBe('not-regular')
    expect(await world.reason(world.read(world.open))).toBe('directory')
    expect(await world.reason(world.read(join(world.open, 'absent')))).toBe('absent')
    server.close()
  })

  test('is a path that a rule denies, also in a granted directory; its name is not listed', async () => {
    await using world = await BrokerWorld.start({ deny: 'open/private' })
    const denied = world.file('private/key', SECRET)
    const path = world.file('public', 'fine')
    world.grants = [...world.grants, world.grant(denied, { write: true })]
    expect(await world.reason(world.read(denied))).toBe('denied-by-rule')
    expect(await world.reason(world.write(denied, 'x'))).toBe('denied-by-rule')
    const { entries } = await world.ask(client => client.list(world.open, 0))
    expect(entries.map(({ name }) => name)).toEqual(['public'])
    expect(await world.read(path)).toBe('fine')
  })

  test('is a granted directory that was replaced, until it is restored', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('f', 'mine')
    renameSync(world.open, `${world.open}.old`)
    mkdirSync(world.open)
    world.file('f', 'theirs')
    expect(await world.reason(world.read(path))).toBe('replaced')
    rmSync(world.open, { recursive: true })
    symlinkSync(`${world.open}.old`, world.open)
    expect(await world.reason(world.read(path))).toBe('link')
    rmSync(world.open)
    renameSync(`${world.open}.old`, world.open)
    expect(await world.read(path)).toBe('mine')
  })

  test('is everything while the audit cannot be written', async () => {
    await using world = await BrokerWorld.start()
    world.grants = [world.grant(world.open, { write: true })]
    const path = world.file('f', 'before')
    world.auditFails = true
    expect(await world.reason(world.read(path))).toBe('unrecorded')
    expect(await world.reason(world.write(path, 'after'))).toBe('unrecorded')
    expect(readFileSync(path, 'utf8')).toBe('before')
    world.auditFails = false
    expect(await world.write(path, 'after')).toBe(5)
  })
})

describe('a granted file', () => {
  test('is served by its name, also after an editor replaced it; its neighbour is not', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('f', 'one')
    const neighbour = world.file('g', SECRET)
    world.grants = [world.grant(path, { write: true })]
    expect(await world.read(path)).toBe('one')
    writeFileSync(`${path}.tmp`, 'two')
    renameSync(`${path}.tmp`, path)
    expect(await world.read(path)).toBe('two')
    expect(await world.write(path, 'three')).toBe(5)
    expect(readFileSync(path, 'utf8')).toBe('three')
    expect(await world.reason(world.read(neighbour))).toBe('not-granted')
    expect(await world.reason(world.ask(client => client.list(world.open, 0)))).toBe('not-granted')
    rmSync(path)
    symlinkSync(neighbour, path)
    expect(await world.reason(world.read(path))).toBe('link')
    expect(await world.reason(world.write(path, 'x'))).toBe('link')
    expect(readFileSync(neighbour, 'utf8')).toBe(SECRET)
  })
})

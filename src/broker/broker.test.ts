import { describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { BrokerWorld, SECRET } from '../../test/broker/world.ts'
import { encodeFrame } from '../wire/frame.ts'

const LARGE = 4 * 1024 * 1024

describe('a granted directory', () => {
  test('is read, listed and looked at; each access is recorded before anything comes', async () => {
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

  test('is listed page by page, links as links, and no further than the bound', async () => {
    await using world = await BrokerWorld.start({ limits: { pageNames: 3, maxNames: 7 } })
    for (let i = 0; i < 4; i++) world.file(`f${i}`, '')
    symlinkSync('/etc', join(world.open, 'link'))
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
  test('is what nobody granted, whether or not it is there', async () => {
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
        { kind: 'broker-denied', op: 'read', path, reason: 'not-granted', cure: `pen grant ${path}` },
      ])
    }
  })

  test('is every odd spelling of a path', async () => {
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

  test('is a link, at the end or on the way; what it leads to is served under its own name', async () => {
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

  test('is a pipe, a socket or a device, which nobody opens; and a directory as a file', async () => {
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

  test('is what a rule denies, in a granted directory too; its name is not told', async () => {
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

  test('is a granted directory that was replaced by another, until it is back', async () => {
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

describe('writing', () => {
  const writable = async (options?: Parameters<typeof BrokerWorld.start>[0]) => {
    const world = await BrokerWorld.start(options)
    world.grants = [world.grant(world.open, { write: true })]
    return world
  }

  test('replaces content whole, makes new files, and leaves nothing beside them', async () => {
    await using world = await writable()
    const path = world.file('f', 'old')
    const content = Buffer.alloc(LARGE).map((_, i) => i * 11)
    expect(await world.write(path, content)).toBe(LARGE)
    expect(readFileSync(path).equals(content)).toBe(true)
    expect(await world.write(join(world.open, 'new'), '')).toBe(0)
    expect(readdirSync(world.open).sort()).toEqual(['f', 'new'])
    expect(world.events.find(({ kind }) => kind === 'broker-allowed')).toMatchObject({ op: 'write', path })
  })

  test('is refused where only reading is granted, with the command that would allow it', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('f', 'old')
    expect(await world.reason(world.write(path, 'new'))).toBe('read-only')
    expect(world.events).toMatchObject([{ reason: 'read-only', cure: `pen grant ${path} --rw` }])
    expect(readFileSync(path, 'utf8')).toBe('old')
  })

  test('never makes a file executable or setuid, unless the grant says so, and then not setuid', async () => {
    await using world = await writable()
    const path = world.file('f', 'old')
    chmodSync(path, 0o6755)
    await world.write(path, 'new', true)
    expect(lstatSync(path).mode & 0o7777).toBe(0o644)
    await world.write(join(world.open, 'new'), 'x', true)
    expect(lstatSync(join(world.open, 'new')).mode & 0o7777).toBe(0o644)
    world.grants = [world.grant(world.open, { write: true, execute: true })]
    await world.write(path, 'newer', true)
    expect(lstatSync(path).mode & 0o7777).toBe(0o755)
    chmodSync(path, 0o6750)
    await world.write(path, 'newest', false)
    expect(lstatSync(path).mode & 0o7777).toBe(0o750)
    expect((await world.ask(client => client.stat(path))).executable).toBe(true)
  })

  test('is refused for a second name, a link, a directory, a pipe, and in a directory that is not there', async () => {
    await using world = await writable()
    const path = world.file('f', 'old')
    linkSync(path, join(world.closed, 'second'))
    symlinkSync(join(world.closed, 'secret'), join(world.open, 'link'))
    symlinkSync(world.closed, join(world.open, 'dir'))
    mkdirSync(join(world.open, 'd'))
    expect(spawnSync('mkfifo', [join(world.open, 'fifo')]).status).toBe(0)
    const cases = {
      f: 'hard-link',
      link: 'link',
      'dir/secret': 'link',
      d: 'directory',
      fifo: 'not-regular',
      'no/f': 'absent',
    }
    for (const [name, reason] of Object.entries(cases))
      expect([name, await world.reason(world.write(join(world.open, name), 'new'))]).toEqual([name, reason])
    expect(await world.reason(world.write(world.open, 'new'))).toBe('directory')
    expect(readFileSync(join(world.closed, 'second'), 'utf8')).toBe('old')
    expect(readFileSync(join(world.closed, 'secret'), 'utf8')).toBe(SECRET)
  })

  test('is refused where the host would run or trust it, in whatever directory', async () => {
    await using world = await writable()
    for (const name of [
      '.git/hooks/post-commit',
      'sub/.git/config',
      '.envrc',
      'x/.vscode/tasks.json',
      '.GIT/config',
      'bare.git/config',
    ]) {
      mkdirSync(join(world.open, name, '..'), { recursive: true })
      expect([name, await world.reason(world.write(join(world.open, name), 'x'))]).toEqual([
        name,
        'protected',
      ])
      expect(existsSync(join(world.open, name))).toBe(false)
    }
    expect(await world.write(join(world.open, 'x/vscode.json'), 'x')).toBe(1)
  })

  test('ends at its bounds, for one file and for the run, and the old file stays', async () => {
    await using world = await writable({ limits: { maxWrite: 100_000 }, maxWritten: 250_000 })
    const path = world.file('f', 'old')
    expect(await world.reason(world.write(path, Buffer.alloc(100_001)))).toBe('too-large')
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(await world.write(path, Buffer.alloc(100_000))).toBe(100_000)
    expect(await world.reason(world.write(path, Buffer.alloc(100_000)))).toBe('too-large')
    expect(readdirSync(world.open)).toEqual(['f'])
  })

  test('that a client gives up, or that ends in the middle, leaves the old file and nothing else', async () => {
    await using world = await writable()
    const path = world.file('f', 'old')
    const client = world.raw()
    client.send(
      { kind: 'request', channel: 1, request: { op: 'write', path, executable: false } },
      { kind: 'data', channel: 1, bytes: Buffer.from('half') },
      { kind: 'cancel', channel: 1 },
    )
    expect(await client.reply(reply => reply.channel === 1)).toMatchObject({ refusal: { reason: 'client' } })
    client.send(
      { kind: 'request', channel: 2, request: { op: 'write', path, executable: false } },
      { kind: 'data', channel: 2, bytes: Buffer.from('half') },
    )
    client.socket.end()
    await client.closed()
    for (
      const late = performance.now() + 5000;
      world.kinds().filter(kind => kind === 'broker-ended client').length < 2;
      await Bun.sleep(1)
    )
      if (performance.now() > late) throw new Error(`not ended: ${world.kinds()}`)
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(readdirSync(world.open)).toEqual(['f'])
  })

  test('into a directory that was moved out of the grant meanwhile does not happen', async () => {
    await using world = await writable()
    const path = world.file('d/f', 'old')
    const client = world.raw()
    client.send({ kind: 'request', channel: 1, request: { op: 'write', path, executable: false } })
    client.send({ kind: 'data', channel: 1, bytes: Buffer.alloc(65_536) })
    client.send({ kind: 'data', channel: 1, bytes: Buffer.alloc(65_536) })
    await client.reply(reply => reply.kind === 'window')
    renameSync(join(world.open, 'd'), join(world.closed, 'd'))
    mkdirSync(join(world.open, 'd'))
    client.send({ kind: 'complete', channel: 1 })
    expect(await client.reply(reply => reply.kind === 'refused')).toMatchObject({
      refusal: { reason: 'changed' },
    })
    expect(readFileSync(join(world.closed, 'd/f'), 'utf8')).toBe('old')
    expect(readdirSync(join(world.open, 'd'))).toEqual([])
    client.socket.destroy()
  })
})

describe('in the middle of a transfer', () => {
  /** A reader that has taken the first window and waits. */
  const begun = async (world: BrokerWorld, path: string) => {
    const client = world.raw()
    client.send({ kind: 'request', channel: 1, request: { op: 'read', path, from: 0, length: null } })
    for (let i = 0; i < 4; i++) await client.reply(reply => reply.kind === 'data')
    return client
  }

  test('a grant that is taken back ends it with that reason, whether or not the client reads', async () => {
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

  test('a grant whose time is over ends it with that reason', async () => {
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

  test('a grant that is narrowed ends what it no longer covers, and a write that it no longer lets', async () => {
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

  test('a file that is replaced goes on as it was; one that is cut short ends as changed', async () => {
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
  test('twenty transfers at once come whole, while others do not read', async () => {
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

  test('beyond the bound are told, and one that never moves is ended', async () => {
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

  test('that speak nonsense are cut off, and nobody else is', async () => {
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

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
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { BrokerWorld, SECRET } from '../../test/file-broker/world.ts'

const LARGE = 4 * 1024 * 1024

describe('writing', () => {
  const writable = async (options?: Parameters<typeof BrokerWorld.start>[0]) => {
    const world = await BrokerWorld.start(options)
    world.grants = [world.grant(world.open, { write: true })]
    return world
  }

  test('replaces content atomically, creates new files, and leaves no other file', async () => {
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
    expect(world.events).toMatchObject([{ reason: 'read-only', fix: `pen grant ${path} --rw` }])
    expect(readFileSync(path, 'utf8')).toBe('old')
  })

  test('that is refused is reported to a client that has sent nothing yet', async () => {
    await using world = await BrokerWorld.start()
    const path = world.file('f', 'old')
    async function* never(): AsyncGenerator<Uint8Array, void, void> {
      await new Promise(() => undefined)
    }
    expect(await world.reason(world.ask(client => client.write(path, never(), false)))).toBe('read-only')
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

  test('is refused for a hard link, a symlink, a directory, a pipe, and in an absent directory', async () => {
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

  test('is refused where the host would run or trust the file, in every directory', async () => {
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

  test('ends at its limits, for one file and for the run, and the old file stays', async () => {
    await using world = await writable({ limits: { maxWrite: 100_000 }, maxWritten: 250_000 })
    const path = world.file('f', 'old')
    expect(await world.reason(world.write(path, Buffer.alloc(100_001)))).toBe('too-large')
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(await world.write(path, Buffer.alloc(100_000))).toBe(100_000)
    expect(await world.reason(world.write(path, Buffer.alloc(100_000)))).toBe('too-large')
    expect(readdirSync(world.open)).toEqual(['f'])
  })

  test('of empty files ends at the limit of the run too', async () => {
    await using world = await writable({ maxWritten: 10_000 })
    const reasons: string[] = []
    for (const name of ['a', 'b', 'c'])
      reasons.push(await world.reason(world.write(join(world.open, name), '')))
    expect(reasons).toEqual(['served', 'served', 'too-large'])
    expect(readdirSync(world.open).sort()).toEqual(['a', 'b'])
  })

  test('that a client cancels, or that breaks off, leaves the old file and nothing else', async () => {
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

  test('into a directory that was moved out of the grant is refused', async () => {
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

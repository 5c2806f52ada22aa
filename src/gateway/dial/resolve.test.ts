import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DnsServer } from '../../../test/gateway/dns-server.ts'
import { host, UP, World } from '../../../test/gateway/world.ts'
import { Stopwatch } from '../../../test/stopwatch.ts'
import { HostResolver, hostsEntries } from './resolve.ts'

let dns: DnsServer
let turn = 0
beforeAll(async () => {
  dns = await DnsServer.start({
    'empty.test': {},
    'allowed.test': { a: [UP], ttl: 5 },
    'rebind.test': { a: () => (turn++ % 2 === 0 ? [UP] : ['127.0.0.1']), ttl: 0 },
    'loop4.test': { a: ['127.0.0.1'] },
    'meta.test': { a: ['169.254.169.254'] },
    'mixed.test': { a: [UP, '127.0.0.1'] },
    'split.test': { a: [UP], aaaa: ['0:0:0:0:0:0:0:1'] },
    'v6map.test': { aaaa: ['0:0:0:0:0:ffff:7f00:1'] },
    'cname-lo.test': { cname: 'loop4.test' },
    'cname-ok.test': { cname: 'allowed.test' },
    'trunc.test': { lie: 'truncated' },
    'badid.test': { a: [UP], lie: 'other-id' },
    'badq.test': { a: [UP], lie: 'other-question' },
    'loopc.test': { lie: 'loop' },
    'pointer.test': { lie: 'pointer-loop' },
    'silent.test': { lie: 'silent' },
    'servfail.test': { lie: 'servfail' },
    'forever.test': { a: [UP], ttl: 0x7fff_ffff },
  })
})
afterAll(() => dns.close())

const resolver = (): HostResolver =>
  new HostResolver({ servers: [dns.address], timeoutMs: 400, hostsFile: null })

describe('a lookup on the host', () => {
  test('returns the addresses of both families', async () => {
    expect(await resolver().resolve(host('allowed.test'))).toEqual({ ok: true, addresses: [UP] } as never)
    expect(await resolver().resolve(host('split.test'))).toEqual({
      ok: true,
      addresses: ['::1', UP],
    } as never)
    expect(await resolver().resolve(host('cname-ok.test'))).toEqual({ ok: true, addresses: [UP] } as never)
  })

  test('reports a name that does not exist or has no address', async () => {
    for (const name of ['nowhere.test', 'empty.test'])
      expect(await resolver().resolve(host(name))).toMatchObject({
        why: `${name} does not exist, or has no address`,
      })
  })

  test('asks for the whole name, without a search domain', async () => {
    const before = dns.questions.length
    expect(await resolver().resolve(host('nowhere.test'))).toMatchObject({
      ok: false,
      reason: 'name-not-found',
    })
    expect(new Set(dns.questions.slice(before))).toEqual(new Set(['nowhere.test']))
  })

  for (const name of ['trunc', 'badid', 'badq', 'loopc', 'pointer', 'silent', 'servfail'])
    test(`with a wrong answer (${name}) fails closed, before its timeout`, async () => {
      const watch = new Stopwatch()
      expect((await resolver().resolve(host(`${name}.test`))).ok).toBe(false)
      expect(watch.ms).toBeLessThan(900)
    })

  test('is cached for its TTL, up to 30 s, and dropped when the policy changes', async () => {
    const one = resolver()
    const ask = async (name: string): Promise<number> => {
      const before = dns.questions.length
      await one.resolve(host(name))
      return dns.questions.length - before
    }
    expect(await ask('allowed.test')).toBe(2)
    expect(await ask('allowed.test')).toBe(0)
    one.forget()
    expect(await ask('allowed.test')).toBe(2)
    expect(await ask('rebind.test')).toBe(2)
    expect(await ask('rebind.test')).toBe(2)
    expect(await ask('silent.test')).toBeGreaterThan(0)
    expect(await ask('silent.test')).toBeGreaterThan(0)
  })

  test('with many waiters sends one query', async () => {
    const one = resolver()
    const before = dns.questions.length
    await Promise.all(Array.from({ length: 50 }, () => one.resolve(host('forever.test'))))
    expect(dns.questions.length - before).toBe(2)
  })

  test('reads the hosts file first', () => {
    const file = '# comment\n198.51.100.9 allowed.test other.test # x\n::1 localhost\n127.1 odd.test\n'
    expect(hostsEntries(file, host('other.test'))).toEqual(['198.51.100.9'] as never)
    expect(hostsEntries(file, host('odd.test'))).toEqual([])
    expect(hostsEntries(file, host('lowed.test'))).toEqual([])
    expect(hostsEntries('198.51.100.9 a.test a.test\n198.51.100.8 a.test', host('a.test'))).toEqual([
      '198.51.100.9',
      '198.51.100.8',
    ] as never)
  })

  test('finds a name in a hosts file as large as a block list', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'pen-hosts-'))
    const hostsFile = join(dir, 'hosts')
    const lines = Array.from({ length: 100_000 }, (_, i) => `0.0.0.0 tracker-${i}.example.com`)
    writeFileSync(hostsFile, `${lines.join('\n')}\n198.51.100.9 last.test\n`)
    const one = new HostResolver({ servers: [dns.address], timeoutMs: 400, hostsFile })
    const before = dns.questions.length
    expect(await one.resolve(host('last.test'))).toMatchObject({ addresses: ['198.51.100.9'] })
    expect(await one.resolve(host('tracker-9.example.com'))).toMatchObject({ addresses: ['0.0.0.0'] })
    expect(dns.questions.length).toBe(before)
    rmSync(dir, { recursive: true })
  })
})

describe('P8 every resolved address is checked before it is dialled', () => {
  const ask = async (name: string): Promise<{ world: World; text: string }> => {
    const world = await World.start({ allow: [`${name}:80`], resolver: resolver() })
    const client = await world.byName(name, 80)
    await client.send(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`).until(() => client.text.endsWith('ok'))
    await world.close()
    return { world, text: client.text }
  }

  for (const name of ['loop4.test', 'meta.test', 'v6map.test', 'cname-lo.test'])
    test(`${name} is refused`, async () => {
      const { world, text } = await ask(name)
      expect(text).toStartWith('HTTP/1.1 403')
      expect(world.strays).toEqual([])
    })

  for (const name of ['allowed.test', 'mixed.test', 'split.test', 'cname-ok.test', 'forever.test'])
    test(`${name} is reached at its good address`, async () => {
      const { world, text } = await ask(name)
      expect(text).toStartWith('HTTP/1.1 200')
      expect(world.strays).toEqual([])
      expect(world.up.requests.length).toBe(1)
    })

  test('P7 a refused name is never looked up', async () => {
    const world = await World.start({ allow: ['allowed.test:80'], resolver: resolver() })
    const client = await world.byName('secret.evil.test', 80)
    await client.send('GET / HTTP/1.1\r\nHost: secret.evil.test\r\n\r\n').over()
    await world.close()
    expect(dns.questions.filter(name => name.includes('evil'))).toEqual([])
  })
})

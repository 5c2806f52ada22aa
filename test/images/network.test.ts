/**
 * A build has the project's network: allowed hosts are reached, others are refused, reported and never looked
 * up.
 */
import { expect } from 'bun:test'
import { inWorld, World } from '../conformance/network/world.ts'
import { everyEngine } from '../engines/every-engine.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

/** Each build differs, so that an engine cannot answer from its cache. */
const dockerfile = (...commands: string[]): string =>
  [
    'ARG PEN_BASE',
    'FROM $PEN_BASE',
    ...commands.map(command => `RUN ${command}; true ${crypto.randomUUID()}`),
    '',
  ].join('\n')

const FETCH = [
  'curl -sS -o /tmp/allowed http://allowed.test/',
  'curl -sSi -o /tmp/denied http://evil.test/',
  'getent hosts evil.test >/tmp/name',
  'curl -sS --max-time 5 -o /tmp/address http://198.51.100.66/',
  'cat /etc/resolv.conf /etc/hosts >/tmp/files',
]

async function inTheWorld(
  shopFor: (world: World) => Workshop,
  body: (world: World, shop: Workshop) => void,
): Promise<void> {
  const world = await World.get()
  using shop = shopFor(world)
  body(world, shop)
}

inWorld('there is a world to build in', async () => {
  expect((await World.get()).pen).toEndWith('/pen')
})

onEachEngine(
  'P6 P7 a build reaches an allowed host; another is refused, reported, and never looked up',
  engine =>
    inTheWorld(
      world => new Workshop(engine, world.on('host'), world.pen),
      (world, shop) => {
        shop.configure({ network: { http: ['allowed.test:80'] } })
        shop.dockerfile(dockerfile(...FETCH))
        const heard = world.listen()
        const built = shop.agreeAndBuild()
        expect([built.code, built.err]).toEqual([0, expect.stringContaining('evil.test:80')])
        const said = (name: string) => shop.inside(built, `cat /tmp/${name}`)
        expect(said('allowed')).toContain('hello from 198.51.100.10')
        expect(said('denied')).toStartWith('HTTP/1.1 403 ')
        expect(said('denied')).toContain('x-pen-denied: not-allowed')
        // A build must not see the host's own names and addresses.
        expect(said('files')).toMatch(
          /^nameserver 127\.0\.0\.1\noptions ndots:1\n127\.0\.0\.1\s+localhost\n::1\s+localhost( ip6-localhost ip6-loopback\n(f[ef]\d\d::\d\s+ip6-\w+\n)+|\n)$/,
        )
        // What the outside saw, and which names the name server was asked for.
        expect(heard.left).toEqual(['tcp 198.51.100.10 80'])
        expect(heard.requests.length).toBe(1)
        expect(heard.names.filter(name => name.includes('evil'))).toEqual([])
        expect(heard.loopback).toEqual([])
        const audit = shop.audit()
        expect(audit.filter(({ kind }) => kind === 'connection-allowed').length).toBe(1)
        expect(audit.filter(({ kind }) => kind === 'connection-denied')).toMatchObject([
          { name: 'evil.test', port: 80, fix: 'pen allow evil.test:80' },
          { address: '198.51.100.66', port: 80 },
        ])
        expect(audit.filter(({ kind }) => kind === 'run-start')).toContainEqual(
          expect.objectContaining({ backend: `${engine.backend} build` }),
        )
      },
    ),
)

onEachEngine('P7 a build has no network when the sandbox has none', engine =>
  inTheWorld(
    world => new Workshop(engine, world.on('host'), world.pen),
    (world, shop) => {
      shop.configure({ network: { http: ['allowed.test:80'] } })
      shop.dockerfile(
        dockerfile(
          'curl -sS -o /tmp/allowed http://allowed.test/ || touch /tmp/refused',
          'ip -o link >/tmp/links',
        ),
      )
      const heard = world.listen()
      const built = shop.agreeAndBuild('--offline')
      expect(built.code).toBe(0)
      expect(shop.inside(built, 'ls /tmp/refused; cat /tmp/links')).toMatch(
        /^\/tmp\/refused\n1: lo: [^\n]*\n$/,
      )
      expect([heard.left, heard.names]).toEqual([[], []])
    },
  ),
)

onEachEngine('pen’s own image asks only the mirrors of its base for packages', engine =>
  inTheWorld(
    world => new Workshop(engine, world.on('host'), world.pen),
    (world, shop) => {
      // One package more than the base has. This world has no such mirror, so it is asked for and does not
      // answer.
      shop.configure({ image: { args: { PACKAGES: 'git hello' } } })
      const heard = world.listen()
      const built = shop.build()
      expect([built.code, built.out]).toEqual([125, ''])
      const connections = shop.audit().filter(({ kind }) => kind.startsWith('connection-'))
      expect(connections.length).toBeGreaterThan(0)
      expect(connections.filter(({ kind }) => kind === 'connection-denied')).toEqual([])
      expect(new Set(heard.names.map(name => name.split(' ')[0])).size).toBeLessThanOrEqual(2)
    },
  ),
)

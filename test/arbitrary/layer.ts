/**
 * Random config documents over a small universe, so that layers often overlap and contradict each other. They
 * go through the real parser: tests cover what a person can write.
 */
import fc from 'fast-check'
import type { GroupRules } from '../../src/policy/compile.ts'
import type { HostPath, PathWorld, Trust } from '../../src/policy/files/path.ts'
import { parseHttpRule } from '../../src/policy/network/endpoint.ts'
import { parseLayer } from '../../src/policy/parse.ts'
import type { Layer } from '../../src/policy/settings.ts'

export const WORKSPACE = '/h/u/ws' as HostPath

/** Every path is a directory, and none is a link. */
export const world: PathWorld = {
  workspace: WORKSPACE,
  home: '/h/u' as HostPath,
  state: '/h/u/.pen' as HostPath,
  locate: path => ({ real: path, kind: 'directory' }),
}

const INSIDE = ['.', 'a', 'a/b', 'a/b/c', 'ab', '.env', '.env.d/x', '.git/hooks', '.git/hooks/x', 'output']
const OUTSIDE = ['/data', '/data/x', '/data/x/y', '/database']
const DENY = ['a', 'a/b', '.env*', '*/b', 'a/*/c', '**/c', 'output/']
const HOSTS = ['a.test', 'b.a.test', 'c.b.a.test', '*.a.test', '*.b.a.test', 'd.test']
const PORTS = [22, 443]

/** The paths and hosts that every verdict is asked for: the universe, and places beside and below it. */
export const PATHS = [
  ...INSIDE.filter(path => path !== '.').map(path => `${WORKSPACE}/${path}`),
  ...['', '/a/b/c/d', '/a/z', '/z', '/.env.d', '/.git', '/.git/config'].map(path => WORKSPACE + path),
  ...OUTSIDE,
  '/data/x/y/z',
  '/h/u',
  '/h/u/ws2',
  '/',
] as HostPath[]

export const ENDPOINTS = ['a.test', 'b.a.test', 'c.b.a.test', 'x.a.test', 'd.test', 'g.test', 'evil.test']
  .flatMap(host => PORTS.map(port => `${host}:${port}`))
  .concat('203.0.113.7:22', '203.0.113.7:443', 'host.pen.internal:22')

const some = <T>(...items: readonly T[]) => fc.array(fc.constantFrom(...items), { maxLength: 3 })
const pick = <T>(...items: readonly T[]) => fc.constantFrom(...items)
const endpoints = HOSTS.flatMap(host => PORTS.map(port => `${host}:${port}`))

const object = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(fields, { requiredKeys: [] })

/** One document with the shape of `config.json`. */
export const anyDocument = (trust: Trust): fc.Arbitrary<object> => {
  const paths = trust === 'untrusted' ? INSIDE : [...INSIDE.filter(path => path !== '..'), ...OUTSIDE]
  return object({
    profile: pick('strict', 'coding', 'dev'),
    workspace: pick('review', 'direct'),
    isolation: pick('auto', 'soft', 'process', 'container', 'gvisor', 'vm'),
    backend: pick('process', 'podman'),
    files: object({
      read: some(...paths),
      write: some(...paths),
      deny: some(...DENY, '/data/x'),
      protect: some('a', 'a/b', '.git/hooks', 'output'),
    }),
    network: object({
      http: some(...endpoints),
      tcp: some('203.0.113.7:22', '203.0.113.7:443', 'host.pen.internal:22'),
      groups: some('npm', 'github'),
      deny: some('a.test', '*.a.test:443', 'b.a.test:22', '203.0.113.7', 'host.pen.internal'),
      ask: pick('never', 'hold'),
      mode: pick('none', 'gateway', 'bridge'),
      upstreamProxy: pick(null, 'http://proxy.example.com:3128'),
      idle: pick('1s', '1h'),
      offline: fc.boolean(),
    }),
    exec: object({ timeout: pick('1s', '5m'), ceiling: pick('2s', '10m'), maxOutput: pick('1MiB', '2MiB') }),
    limits: object({
      cpus: pick(0.5, 8),
      memory: pick('64MiB', '16GiB'),
      pids: pick(8, 4096),
      wall: pick('10s', '2d'),
      disk: pick('1MiB', '1TiB'),
      output: pick('1KiB', '1TiB'),
      files: pick(16, 65_536),
    }),
    env: fc.dictionary(
      pick('ONE', 'TWO', 'THREE'),
      fc.oneof(pick('1', '2'), fc.constant({ from: 'host' as const })),
      { noNullPrototype: true },
    ),
    mounts: some(
      { volume: 'v', at: '/v' },
      { host: `${WORKSPACE}/a`, at: '/m' },
      { host: `${WORKSPACE}/a`, at: '/m', mode: 'rw' },
    ),
    image: fc.constant({ dockerfile: './Dockerfile' }),
    git: object({ identity: fc.boolean() }),
    vm: object({ root: fc.boolean() }),
    tools: object({ shell: fc.boolean(), allow: some('git', 'npm'), exec: pick('any', 'listed') }),
    user: pick('host', '1001:1001'),
    runtime: pick('runc', 'runsc'),
    ssh: object({
      agent: object({
        keys: some(`SHA256:${'A'.repeat(43)}`, `SHA256:${'B'.repeat(43)}`),
        hosts: some('github.com:22', 'a.example:2222'),
        sign: some('git', 'file'),
      }),
    }),
    acceptGaps: some('open-network', 'no-seccomp'),
    ports: some({ guest: 1, host: 1 }, { guest: 2, host: 3 }),
  })
}

export const layerOf = (value: object, trust: Trust, name: string = trust): Layer =>
  parseLayer(
    { value, placeOf: () => undefined, keyPlaceOf: () => undefined },
    { name, trust, world, isPublicSuffix: () => false },
  )

export const anyLayer = (trust: Trust, name?: string): fc.Arbitrary<Layer> =>
  anyDocument(trust).map(value => layerOf(value, trust, name))

const groupRule = (text: string) => {
  const parsed = parseHttpRule(text, () => false)
  if (!parsed.ok) throw new Error(parsed.why)
  return { rule: parsed.value, source: { layer: 'group', place: undefined } }
}

const told = { files: [], env: [] }

export const groupRules: GroupRules = new Map([
  ['npm', { rules: [groupRule('g.test:443')], mirrors: [], told }],
  ['github', { rules: [groupRule('d.test:22')], mirrors: [], told }],
])

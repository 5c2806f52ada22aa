import { describe, expect, test } from 'bun:test'
import { WORKSPACE } from '../../../test/arbitrary/layer.ts'
import { policyOf } from '../../../test/arbitrary/policy.ts'
import { comparePolicies } from './difference.ts'

/** `+` is new, `-` is gone, `~` has changed; a `!` in front is a widening. */
const told = (before: object, after: object): string[] =>
  comparePolicies(policyOf(before), policyOf(after)).map(({ key, change, item, was, widens }) => {
    const sign = { added: '+', removed: '-', changed: '~' }[change]
    const text = item.replace(WORKSPACE, '<ws>')
    return `${widens ? '!' : ''}${sign}${key} ${was === undefined ? '' : `${was} → `}${text}`
  })

const net = (...http: string[]) => ({ network: { http } })

describe('a difference widens', () => {
  test.each<[string, object, object, string[]]>([
    ['a new host', {}, net('a.test:443'), ['!+network.http a.test:443']],
    [
      'a new port of a known one',
      net('a.test:443'),
      net('a.test:443', 'a.test:22'),
      ['!+network.http a.test:22'],
    ],
    [
      'a wildcard in the place of a name',
      net('b.a.test'),
      net('*.a.test'),
      ['!+network.http *.a.test:443', '-network.http b.a.test:443'],
    ],
    [
      'a host that is no longer opened',
      net('a.test:443'),
      { network: { http: ['a.test:443', { host: 'a.test:443', open: false }] } },
      ['!+network.http a.test:443 (never opened)'],
    ],
    ['a denial that is gone', { network: { deny: ['a.test'] } }, {}, ['!-network.deny a.test']],
    ['a path to read', {}, { files: { read: ['/data'] } }, ['!+files.read /data']],
    [
      'a path to write that could be read',
      { files: { read: ['/data'] } },
      { files: { write: ['/data'] } },
      ['!+files.write /data'],
    ],
    [
      'a grant that climbs over a denial',
      { files: { deny: ['a'] } },
      { files: { deny: ['a'], read: ['a/b'] } },
      ['!+files.read <ws>/a/b'],
    ],
    [
      'a grant that climbs over a protected place',
      {},
      { files: { write: ['.git/hooks/x'] } },
      ['!+files.write <ws>/.git/hooks/x'],
    ],
    [
      'a place for reading only that is writable again',
      { files: { read: ['a'] } },
      {},
      ['!-files.read <ws>/a'],
    ],
    ['a variable', {}, { env: { LD_PRELOAD: '/x.so' } }, ['!+env LD_PRELOAD=/x.so']],
    ['another value of it', { env: { A: 'secret' } }, { env: { A: '2' } }, ['!~env A=2']],
    [
      'a variable of the host',
      { env: { A: '1' } },
      { env: { A: { from: 'host' } } },
      ["!~env A from the host's own"],
    ],
    [
      'a mount that may be written now',
      { mounts: [{ host: '/data', at: '/m' }] },
      { mounts: [{ host: '/data', at: '/m', mode: 'rw' }] },
      ['!+mounts /data at /m (rw)', '-mounts /data at /m (ro)'],
    ],
    [
      'a mount that is gone and hid a part of the workspace',
      { mounts: [{ volume: 'v', at: `${WORKSPACE}/a` }] },
      {},
      ['!-mounts volume v at <ws>/a'],
    ],
    ['more memory', { limits: { memory: '1GiB' } }, {}, ['!~limits.memory 1GiB → 4GiB']],
    ['a weaker wall', { isolation: 'vm' }, { isolation: 'process' }, ['!~isolation vm → process']],
    ['an accepted gap', {}, { acceptGaps: ['open-network'] }, ['!+acceptGaps open-network']],
    [
      'all tools instead of some',
      { tools: { allow: ['git'] } },
      {},
      ['!~tools.allow git → all that the mounts show'],
    ],
    [
      'another proxy, without the one before',
      { network: { upstreamProxy: 'http://u:secret@p.test:1' } },
      {},
      ['!~network.upstreamProxy none'],
    ],
    [
      'another image',
      {},
      { image: { dockerfile: './D' } },
      ['!~image {"dockerfile":"./D","context":".","args":{},"pull":"missing"}'],
    ],
  ])('%s', (_, before, after, expected) => {
    expect(told(before, after)).toEqual(expected)
  })
})

describe('a difference does not widen', () => {
  test.each<[string, object, object, string[]]>([
    ['a host that is gone', net('a.test:443'), {}, ['-network.http a.test:443']],
    [
      'a name that a wildcard allowed',
      net('*.a.test'),
      net('*.a.test', 'b.a.test'),
      ['+network.http b.a.test:443'],
    ],
    [
      'a denial that a wider one replaces',
      { network: { deny: ['a.test:443'] } },
      { network: { deny: ['a.test'] } },
      ['+network.deny a.test', '-network.deny a.test:443'],
    ],
    [
      'a place in the writable workspace that is for reading only',
      {},
      { files: { read: ['a'] } },
      ['+files.read <ws>/a'],
    ],
    [
      'a path inside a granted one',
      { files: { read: ['/data'] } },
      { files: { read: ['/data', '/data/x'] } },
      ['+files.read /data/x'],
    ],
    [
      'a denial, a protected place',
      {},
      { files: { deny: ['a'], protect: ['a/b'] } },
      ['+files.deny a', '+files.protect <ws>/a/b'],
    ],
    [
      'a list of tools',
      {},
      { tools: { allow: ['git'], shell: false, exec: 'listed' } },
      [
        '~tools.allow all that the mounts show → git',
        '~tools.shell true → false',
        '~tools.exec any → listed',
      ],
    ],
    ['a variable that is gone', { env: { A: 'secret' } }, {}, ['-env A']],
    [
      'a mount that hid nothing and is gone',
      { mounts: [{ volume: 'v', at: '/v' }] },
      {},
      ['-mounts volume v at /v'],
    ],
    ['less memory', {}, { limits: { memory: '1GiB' } }, ['~limits.memory 4GiB → 1GiB']],
    ['offline', {}, { network: { offline: true } }, ['~network.offline no → yes']],
  ])('%s', (_, before, after, expected) => {
    expect(told(before, after)).toEqual(expected)
  })
})

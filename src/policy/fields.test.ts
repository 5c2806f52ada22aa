import { describe, expect, test } from 'bun:test'
import { layerOf } from '../../test/arbitrary/layer.ts'
import { grow, narrow } from './fields.ts'
import { printRule } from './network/net-rule.ts'
import type { Settings } from './settings.ts'

const user = (value: object): Settings => layerOf(value, 'user').settings
const agent = (value: object): Settings => layerOf(value, 'untrusted').settings

const http = (settings: Settings) => settings['network.http']?.items.map(({ rule }) => printRule(rule))
const paths = (settings: Settings, key: 'files.read' | 'files.write') =>
  settings[key]?.items.map(({ rule }) => `${rule.path}@${rule.rank}`)

describe('the user’s layers grow', () => {
  test('a later value wins, and an absent key says nothing', () => {
    const two = grow(user({ limits: { pids: 10, cpus: 1 } }), user({ limits: { pids: 20 } }))
    expect([two['limits.pids']?.value, two['limits.cpus']?.value]).toEqual([20, 1])
  })

  test('lists add up, and an empty list removes what came before', () => {
    const a = user({ network: { http: ['a.test'] } })
    const b = user({ network: { http: ['d.test'] } })
    const none = user({ network: { http: [] } })
    expect(http(grow(a, b))).toEqual(['a.test:443', 'd.test:443'])
    expect(http(grow(a, none))).toEqual([])
    expect(http(grow(grow(a, none), b))).toEqual(['d.test:443'])
    expect(http(grow(a, user({})))).toEqual(['a.test:443'])
  })

  test('variables join by name, the later value winning', () => {
    const env = grow(user({ env: { A: '1', B: '1' } }), user({ env: { B: '2' } })).env
    expect([...(env ?? [])].map(([name, { value }]) => [name, value.kind === 'text' && value.text])).toEqual([
      ['A', '1'],
      ['B', '2'],
    ])
  })

  test('offline is not taken back by a later layer', () => {
    const off = user({ network: { offline: true } })
    const on = user({ network: { offline: false } })
    expect(grow(off, on)['network.offline']?.value).toBe(true)
    expect(grow(on, off)['network.offline']?.value).toBe(true)
    expect(grow(on, on)['network.offline']?.value).toBe(false)
  })
})

describe('an untrusted layer narrows', () => {
  test('hosts to what both name, the narrower of the two', () => {
    const granted = user({ network: { http: ['*.a.test', 'd.test', 'd.test:22'] } })
    expect(http(narrow(granted, agent({ network: { http: ['b.a.test', 'd.test', 'evil.test'] } })))).toEqual([
      'b.a.test:443',
      'd.test:443',
    ])
    expect(http(narrow(granted, agent({ network: { http: [] } })))).toEqual([])
    expect(http(narrow(granted, agent({})))).toHaveLength(3)
  })

  test('paths to the deeper of both, no more specific than the user’s own', () => {
    const granted = user({ files: { read: ['.'], write: ['a'] } })
    const kept = narrow(granted, agent({ files: { read: ['a/b', 'ab'] } }))
    expect(paths(kept, 'files.read')).toEqual(['/h/u/ws/a/b@3', '/h/u/ws/ab@3', '/h/u/ws/a/b@4'])
    expect(paths(kept, 'files.write')).toEqual(['/h/u/ws/a/b@4'])
  })

  test('what may be read to what may be written too: it cannot hide a file and keep it writable', () => {
    const granted = user({ files: { read: ['.'], write: ['.'] } })
    const kept = narrow(granted, agent({ files: { read: ['a'] } }))
    expect(paths(kept, 'files.write')).toEqual(['/h/u/ws/a@3'])
  })

  test('what it says twice only once', () => {
    const many = Array.from({ length: 500 }, () => 'a')
    const kept = narrow(
      user({ files: { read: ['.'], write: ['.'] } }),
      agent({ files: { read: many, write: many } }),
    )
    expect(paths(kept, 'files.write')).toEqual(['/h/u/ws/a@3'])
  })

  test('denials to those of both, and never takes one back', () => {
    const granted = user({ files: { deny: ['a'] }, network: { deny: ['a.test'] } })
    expect(narrow(granted, agent({ files: { deny: ['ab'] } }))['files.deny']?.items).toHaveLength(2)
    expect(narrow(granted, agent({ files: { deny: [] } }))['files.deny']?.items).toHaveLength(1)
    expect(narrow(granted, agent({ network: { deny: [] } }))['network.deny']?.items).toHaveLength(1)
  })

  test('limits to the smaller', () => {
    const granted = user({ limits: { pids: 100, memory: '1GiB' } })
    const kept = narrow(granted, agent({ limits: { pids: 10, memory: '2GiB', cpus: 99 } }))
    expect([kept['limits.pids']?.value, kept['limits.memory']?.value as number]).toEqual([10, 1024 ** 3])
    expect(kept['limits.cpus']).toBeUndefined()
  })

  test('variables to the names that both have, with the user’s values', () => {
    const granted = user({ env: { A: '1', B: '2' } })
    const kept = narrow(granted, agent({ env: { A: '/evil.so', LD_PRELOAD: '/evil.so' } })).env
    expect([...(kept ?? [])].map(([name, { value }]) => [name, value.kind === 'text' && value.text])).toEqual(
      [['A', '1']],
    )
    expect(narrow(granted, agent({ env: {} })).env?.size).toBe(0)
    expect(narrow({}, agent({ env: { A: '1' } })).env).toBeUndefined()
  })

  test('tools to those that both name; where the user named none, to those it names', () => {
    const tools = (granted: object, limit: object) =>
      narrow(user(granted), agent(limit))['tools.allow']?.items.map(({ rule }) => rule)
    expect(tools({ tools: { allow: ['git', 'npm'] } }, { tools: { allow: ['npm', 'curl'] } })).toEqual([
      'npm',
    ])
    expect(tools({}, { tools: { allow: ['git'] } })).toEqual(['git'])
    expect(tools({}, { tools: { allow: [] } })).toEqual([])
    expect(tools({}, {})).toBeUndefined()
  })

  test.each([
    ['auto', 'soft', 'auto'],
    ['auto', 'process', 'auto'],
    ['auto', 'container', 'container'],
    ['process', 'auto', 'auto'],
    ['process', 'soft', 'process'],
    ['container', 'process', 'container'],
    ['container', 'vm', 'vm'],
    ['soft', 'process', 'process'],
  ])('isolation %s with %s to %s: never weaker', (granted, limit, kept) => {
    const left = narrow(user({ isolation: granted }), agent({ isolation: limit })).isolation?.value
    expect(left as string).toBe(kept)
  })

  test.each([
    ['direct', 'review', 'review'],
    ['review', 'direct', 'review'],
    ['direct', 'direct', 'direct'],
  ])('workspace %s with %s to %s: a review is switched on, never off', (granted, limit, kept) => {
    const left = narrow(user({ workspace: granted }), agent({ workspace: limit })).workspace?.value
    expect(left as string).toBe(kept)
  })

  test('a mount to read-only, and not to another source or place', () => {
    const granted = user({ mounts: [{ host: '/h/u/ws/a', at: '/m', mode: 'rw' }] })
    const modes = (limit: object) =>
      narrow(granted, agent(limit)).mounts?.items.map(({ rule }) => rule.kind === 'host' && rule.mode)
    expect(modes({ mounts: [{ host: 'a', at: '/m' }] })).toEqual(['ro'])
    expect(modes({ mounts: [{ host: 'a', at: '/m', mode: 'rw' }] })).toEqual(['rw'])
    expect(modes({ mounts: [{ host: 'ab', at: '/m' }] })).toEqual([])
    expect(modes({ mounts: [{ host: 'a', at: '/n' }] })).toEqual([])
    expect(modes({})).toEqual(['rw'])
  })

  test('nothing that only the user chooses', () => {
    const said = {
      backend: 'podman',
      user: '1001:1001',
      runtime: 'runc',
      image: { dockerfile: 'x' },
      network: { upstreamProxy: 'http://proxy.example.com:3128' },
    }
    const granted = user({ backend: 'process', user: 'host' })
    const kept = narrow(granted, agent(said))
    expect([kept.backend?.value, kept.user?.value]).toEqual(['process', 'host'])
    expect([kept.runtime, kept.image, kept['network.upstreamProxy']]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('no gap is accepted, key lent or port opened that the user did not', () => {
    const key = `SHA256:${'A'.repeat(43)}`
    const said = {
      acceptGaps: ['no-seccomp'],
      ssh: { agent: { keys: [key] } },
      ports: [{ guest: 1, host: 1 }],
    }
    const kept = narrow(user({}), agent(said))
    expect(kept).toEqual({})
    expect(Object.keys(narrow(user(said), agent(said)))).toEqual(['ssh.agent.keys', 'acceptGaps', 'ports'])
  })
})

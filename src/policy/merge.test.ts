import { describe, expect, test } from 'bun:test'
import { layerOf, WORKSPACE, world } from '../../test/arbitrary/layer.ts'
import { type Merged, mergeLayers } from './merge.ts'
import { profileLayer } from './profile.ts'
import type { PathGrant } from './settings.ts'

function merge(user: object, agent?: object, allowUserExpansion = false): Merged {
  return mergeLayers({
    base: profile => profileLayer(profile, world),
    workspace: WORKSPACE,
    trusted: [layerOf(user, 'user', 'live config')],
    untrusted: agent === undefined ? [] : [layerOf(agent, 'untrusted', 'agent-permissions.json')],
    allowUserExpansion,
  })
}

const writes = ({ settings }: Merged) => settings['files.write']?.items.map(({ rule }) => rule.path as string)
const told = ({ expanded }: Merged) =>
  expanded.map(({ key, item }) => [key, key.startsWith('files.') ? (item as PathGrant).path : item])

describe('the profile', () => {
  test('is coding by default', () => {
    expect(merge({}).settings.profile).toEqual({
      value: 'coding',
      source: { layer: 'default', place: undefined },
    })
  })

  test('is the one of the last layer that names one, and everything stands on it', () => {
    const strict = merge({ profile: 'strict' })
    expect(strict.layers.map(layer => layer.name)).toEqual(['profile strict', 'live config'])
    expect(writes(strict)).toEqual(['/h/u/ws/output'])
  })

  test('of an untrusted layer makes it stricter, with what the user grants by hand left', () => {
    const merged = merge({ files: { write: ['a'] } }, { profile: 'strict' })
    expect(merged.settings.profile?.value).toBe('strict')
    expect(merged.settings['network.mode']?.value).toBe('none')
    expect(new Set(writes(merged))).toEqual(new Set(['/h/u/ws/output', '/h/u/ws/a']))
  })

  test('of an untrusted layer never makes it looser', () => {
    const merged = merge({ profile: 'strict' }, { profile: 'dev' })
    expect(merged.settings.profile?.value).toBe('strict')
    expect(writes(merged)).toEqual(['/h/u/ws/output'])
  })

  test('of an untrusted layer does not open what the user made read-only by hand', () => {
    const { settings } = merge({ files: { read: ['output'] } }, { profile: 'strict' })
    expect(settings['files.write']?.items.map(({ rule }) => rule)).toEqual([
      { path: '/h/u/ws/output', rank: 3 } as PathGrant,
    ])
  })
})

describe('without --allow-user-expansion', () => {
  test('a document that asks for more gets nothing, and nothing is listed as added', () => {
    const merged = merge({}, { network: { http: ['a.test'] }, files: { write: ['.'] }, env: { A: '1' } })
    expect(merged.settings['network.http']).toBeUndefined()
    expect(merged.settings.env).toBeUndefined()
    expect(merged.expanded).toEqual([])
  })
})

describe('with --allow-user-expansion', () => {
  test('each added grant is listed, and what the user already had is not', () => {
    const merged = merge(
      { network: { http: ['*.a.test', 'd.test'] }, limits: { pids: 100, cpus: 4 }, env: { A: '1' } },
      {
        network: { http: ['b.a.test', 'd.test:22'], mode: 'bridge' },
        limits: { pids: 50, cpus: 8 },
        env: { B: '2' },
        files: { read: ['a'] },
        acceptGaps: ['open-network'],
      },
      true,
    )
    expect(told(merged)).toEqual([
      ['network.http', { kind: 'name', host: 'd.test', port: 22 }],
      ['network.mode', 'bridge'],
      ['limits.cpus', 8],
      ['env', 'B'],
      ['acceptGaps', 'open-network'],
    ])
    expect(merged.expanded.every(({ layer }) => layer === 'agent-permissions.json')).toBe(true)
  })

  test('a looser profile is listed with all of its grants', () => {
    const merged = merge({ profile: 'strict' }, { profile: 'coding' }, true)
    expect(told(merged)).toContainEqual(['profile', 'coding'])
    expect(told(merged)).toContainEqual(['files.write', '/h/u/ws'])
    expect(told(merged)).toContainEqual(['network.mode', 'gateway'])
    expect(told(merged).map(([key]) => key)).toContain('limits.memory')
  })

  test('a stricter profile adds nothing', () => {
    expect(told(merge({ profile: 'dev' }, { profile: 'strict' }, true))).toEqual([])
  })

  test('a replaced value is listed, although the name existed before', () => {
    expect(told(merge({ env: { A: '1' } }, { env: { A: '2' } }, true))).toEqual([['env', 'A']])
  })

  test('a place that the user made read-only is listed when it becomes writable', () => {
    const merged = merge({ files: { read: ['a'] } }, { files: { write: ['a'] } }, true)
    expect(told(merged)).toEqual([['files.write', '/h/u/ws/a']])
  })

  test('an emptied list takes away, but not a denial', () => {
    const merged = merge(
      { network: { http: ['a.test'], deny: ['d.test'] }, files: { deny: ['a'] } },
      { network: { http: [], deny: [] }, files: { deny: [], protect: [] } },
      true,
    )
    expect(merged.settings['network.http']?.items).toEqual([])
    expect(merged.settings['network.deny']?.items).toHaveLength(1)
    expect(merged.settings['files.deny']?.items.length).toBeGreaterThan(1)
    expect(merged.settings['files.protect']?.items.length).toBeGreaterThan(50)
    expect(merged.expanded).toEqual([])
  })

  test('a grant below a denial stays below it', () => {
    const { settings } = merge({ files: { deny: ['a'] } }, { files: { read: ['a/b/c'] } }, true)
    expect(settings['files.read']?.items.at(-1)?.rule).toEqual({
      path: '/h/u/ws/a/b/c',
      rank: 4,
    } as PathGrant)
  })

  test('the first list of tools restricts, and is not listed as added', () => {
    const merged = merge({}, { tools: { allow: ['git'] } }, true)
    expect(merged.settings['tools.allow']?.items).toHaveLength(1)
    expect(merged.expanded).toEqual([])
  })
})

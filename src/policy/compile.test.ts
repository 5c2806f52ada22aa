import { describe, expect, test } from 'bun:test'
import { groupRules, layerOf, PATHS, WORKSPACE, world } from '../../test/arbitrary/layer.ts'
import { powersOf } from '../../test/arbitrary/powers.ts'
import { compile } from './compile.ts'
import { grow } from './fields.ts'
import { printRule } from './network/net-rule.ts'
import { denyAll } from './policy.ts'
import { profileLayer } from './profile.ts'
import type { Settings } from './settings.ts'

const compiled = (settings: Settings) => compile(settings, WORKSPACE, groupRules)
const said = (value: object) =>
  compiled(grow(profileLayer('coding', world).settings, layerOf(value, 'user').settings))

describe('a compiled policy', () => {
  test('of nothing denies everything', () => {
    const { tools, ...rest } = compiled({})
    const { tools: _, ...zero } = denyAll(WORKSPACE)
    expect(rest).toEqual(zero)
    // No list of tools means those that are shown; nothing is shown, and no shell may be run.
    expect(tools).toEqual({ shell: false, allow: 'shown', exec: 'listed' })
    const powers = [...powersOf(compiled({}))]
    expect(powers.filter(power => /^(connect|read|write|env|mount|online)/.test(power))).toEqual([])
  })

  test('has no optional field', () => {
    const missing = (value: unknown): boolean =>
      value === undefined ||
      (typeof value === 'object' &&
        value !== null &&
        !(value instanceof Map || value instanceof Set) &&
        Object.values(value).some(missing))
    const { sources: _, ...policy } = compiled({})
    expect(missing(policy)).toBe(false)
  })

  test.each([
    ['absent', {}],
    ['an empty object', { network: {} }],
    ['an empty list', { network: { http: [] } }],
    ['empty lists', { network: { http: [], tcp: [], groups: [] } }],
  ])('with the allowlist %s reaches no host', (_, value) => {
    expect([...powersOf(said(value))].filter(power => power.startsWith('connect'))).toEqual([])
  })

  test('reads what it writes, once', () => {
    const { files } = said({ files: { write: ['a'], read: ['a'] } })
    expect(files.read.map(({ rule }) => rule.path as string)).toEqual([WORKSPACE, `${WORKSPACE}/a`])
    expect(PATHS.length).toBeGreaterThan(0)
  })

  test('has the hosts of its groups, and of those alone', () => {
    const allow = said({ network: { groups: ['npm', 'npm'] } }).network.allow
    expect(allow.map(({ rule }) => printRule(rule))).toEqual(['g.test:443'])
  })

  test('is offline whatever is granted', () => {
    const policy = said({
      network: { http: ['a.test'], tcp: ['203.0.113.7:22'], groups: ['npm'], offline: true },
    })
    expect([...powersOf(policy)].filter(power => power.startsWith('connect'))).toEqual([])
  })

  test('never lets a command run longer than the ceiling', () => {
    const { exec } = said({ exec: { timeout: '5m', ceiling: '1m' } })
    expect([exec.timeout as number, exec.ceiling as number]).toEqual([60_000, 60_000])
    expect(said({}).exec.timeout as number).toBe(120_000)
  })

  test('knows which layer set each value', () => {
    const { sources } = said({ limits: { pids: 3 } })
    expect([sources.get('limits.pids')?.layer, sources.get('limits.cpus')?.layer]).toEqual([
      'user',
      'profile coding',
    ])
  })
})

import { describe, expect, test } from 'bun:test'
import { parseConfigKey } from '../../policy/config-key.ts'
import type { JsonObject } from './json.ts'
import { readWords, valueAt, withValueAt } from './value-at.ts'

const set = (document: JsonObject, key: string, ...words: string[]): unknown => {
  const parsed = parseConfigKey(key)
  if (!parsed.ok) throw new Error(parsed.why)
  const value = words.length === 0 ? undefined : readWords(words, parsed.value)
  return withValueAt(document, parsed.value.path, value)
}

describe('a value', () => {
  test.each<[string, string[], unknown]>([
    ['profile', ['dev'], { profile: 'dev' }],
    ['limits.pids', ['9'], { limits: { pids: 9 } }],
    ['network.offline', ['true'], { network: { offline: true } }],
    ['network.http', ['a.test', 'b.test'], { network: { http: ['a.test', 'b.test'] } }],
    ['network.http', ['["a.test"]'], { network: { http: ['a.test'] } }],
    ['network.http', ['[]'], { network: { http: [] } }],
    ['network.upstreamProxy', ['null'], { network: { upstreamProxy: null } }],
    ['network.upstreamProxy', ['http://p.test:1'], { network: { upstreamProxy: 'http://p.test:1' } }],
    ['env.A', ['1'], { env: { A: '1' } }],
    ['env.A', ['{"from":"host"}'], { env: { A: { from: 'host' } } }],
    ['mounts', ['[{"volume":"v","at":"/v"}]'], { mounts: [{ volume: 'v', at: '/v' }] }],
  ])('of %s is read from %j', (key, words, expected) => {
    expect(set({}, key, ...words)).toEqual(expected)
  })

  test.each([
    ['network.offline', ['yes']],
    ['limits.pids', ['nine']],
    ['limits.memory', ['1GiB', '2GiB']],
    ['mounts', ['[{]']],
    ['network.http', ['["a",]']],
  ])('of %s is refused: %j', (key, words) => {
    expect(() => set({}, key, ...words)).toThrow()
  })

  test('takes the place of the old one, where it stood, and leaves the rest', () => {
    const before = { version: 1, limits: { pids: 1, cpus: 2 }, profile: 'dev' }
    expect(JSON.stringify(set(before, 'limits.pids', '7'))).toBe(
      '{"version":1,"limits":{"pids":7,"cpus":2},"profile":"dev"}',
    )
    expect(before.limits.pids).toBe(1)
  })

  test('taken out leaves no empty object behind, and what was not there is no mistake', () => {
    expect(set({ version: 1, limits: { pids: 1 } }, 'limits.pids')).toEqual({ version: 1 })
    expect(set({ limits: { pids: 1, cpus: 2 } }, 'limits.pids')).toEqual({ limits: { cpus: 2 } })
    expect(set({ version: 1 }, 'env.A')).toEqual({ version: 1 })
  })

  test('is found where it stands, and nowhere else', () => {
    const document = { network: { http: ['a'] }, user: 'host' }
    expect(valueAt(document, ['network', 'http'])).toEqual(['a'])
    expect(valueAt(document, ['network', 'http', 'length'])).toBeUndefined()
    expect(valueAt(document, ['user', 'length'])).toBeUndefined()
    expect(valueAt(document, ['toString'])).toBeUndefined()
  })
})

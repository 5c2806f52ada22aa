import { describe, expect, test } from 'bun:test'
import type { HostPath } from './files/path.ts'
import { GROUPS } from './network/groups.ts'
import { parseLayer } from './parse.ts'
import { isPresetName, PRESETS, type PresetName, presetLayer } from './presets.ts'
import { SANDBOX_HOME } from './profile.ts'

const names = Object.keys(PRESETS) as PresetName[]
const environment = (isSet: (variable: string) => boolean, isSecret = isSet) => ({
  isSet,
  isSecret,
})
const everything = environment(() => true)
const nothing = environment(() => false)
const only = (...names: readonly string[]) => environment(name => names.includes(name))

const parse = (document: object) =>
  parseLayer(
    { value: document, placeOf: () => undefined, keyPlaceOf: () => undefined },
    {
      name: 'preset',
      trust: 'user',
      world: {
        workspace: '/w' as HostPath,
        home: '/h' as HostPath,
        state: '/h/.pen' as HostPath,
        locate: path => ({ real: path, kind: 'directory' }),
      },
      isPublicSuffix: () => true,
    },
  )

describe('presets', () => {
  test.each(names)('%s is a document that the policy takes, with keys set and without', name => {
    for (const isSet of [everything, nothing]) {
      const { settings } = parse(presetLayer(name, isSet).document)
      expect(settings.mounts?.items.every(({ rule }) => rule.kind === 'volume')).toBe(true)
      expect(Object.values(settings).some(setting => 'clear' in setting && setting.clear === true)).toBe(
        false,
      )
    }
  })

  test.each(names)('%s has a version, a reason for every host, and known groups', name => {
    const preset = PRESETS[name]
    expect(preset.version).toBeGreaterThan(0)
    for (const { reason } of preset.hosts) expect(reason).not.toBe('')
    for (const { group } of preset.providers) expect(GROUPS[group].hosts).not.toBeEmpty()
    for (const { at } of preset.volumes) expect(at).toStartWith(`${SANDBOX_HOME}/`)
  })

  test('no two agents share a volume: one could not read another’s sign-in', () => {
    const volumes = names.flatMap(name => PRESETS[name].volumes.map(({ volume }) => volume))
    expect(new Set(volumes).size).toBe(volumes.length)
  })

  test('only variables that are set are passed on, and a value is never asked for', () => {
    expect(presetLayer('claude-code', nothing).passed).toEqual([])
    const short = environment(
      name => name === 'ANTHROPIC_API_KEY',
      () => false,
    )
    expect(presetLayer('claude-code', short)).toMatchObject({
      keys: ['ANTHROPIC_API_KEY'],
      secrets: [],
      document: { env: { ANTHROPIC_API_KEY: { from: 'host' } } },
    })
  })

  test('a key is a secret for the API of its provider, and not for an address in the environment', () => {
    const { document, passed, secrets } = presetLayer('claude-code', only('ANTHROPIC_API_KEY'))
    expect(passed).toEqual([])
    expect(secrets).toMatchObject([{ name: 'ANTHROPIC_API_KEY', to: ['api.anthropic.com:443'] }])
    expect(document).not.toHaveProperty('env.ANTHROPIC_API_KEY')
    const elsewhere = presetLayer('claude-code', only('ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL'))
    expect(elsewhere.secrets[0]?.to).toEqual(['api.anthropic.com:443'])
  })

  test('an agent for any model opens those that there is a key for, and no other', () => {
    expect(presetLayer('aider', nothing).groups).toEqual([])
    expect(presetLayer('aider', only('OPENAI_API_KEY')).groups).toEqual(['openai'])
    expect(presetLayer('codex', nothing).groups).toEqual(['openai'])
  })

  test('an address in the environment opens nothing', () => {
    const { addresses, hosts, groups } = presetLayer('claude-code', only('ANTHROPIC_BASE_URL'))
    expect(addresses).toEqual(['ANTHROPIC_BASE_URL'])
    expect([...hosts, ...groups]).toEqual(['anthropic'])
  })

  test('a name that objects inherit is no preset', () => {
    for (const name of ['constructor', '__proto__', 'toString', '']) expect(isPresetName(name)).toBe(false)
    expect(isPresetName('codex')).toBe(true)
  })
})

/** The promise of restrict-only merging, for whatever layers there are. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyLayer, groupRules, PATHS, WORKSPACE, world } from '../../test/arbitrary/layer.ts'
import { KEYS_OF_POWERS, newPowers, numbersOf, powersOf } from '../../test/arbitrary/powers.ts'
import { compile } from './compile.ts'
import { grow, narrow } from './fields.ts'
import { decideFile } from './files/decide-file.ts'
import { isWithin } from './files/path.ts'
import { type Merged, type MergeInput, mergeLayers } from './merge.ts'
import type { Policy } from './policy.ts'
import { profileLayer } from './profile.ts'
import type { PathGrant, Settings } from './settings.ts'

const users = fc.array(anyLayer('user', 'live config'), { maxLength: 2 })
const hostile = anyLayer('untrusted', 'agent-permissions.json')

const merge = (input: Partial<MergeInput>): Merged =>
  mergeLayers({
    base: profile => profileLayer(profile, world),
    workspace: WORKSPACE,
    trusted: [],
    untrusted: [],
    allowUserExpansion: false,
    ...input,
  })
const policyOf = (settings: Settings): Policy => compile(settings, WORKSPACE, groupRules)
const allOf = (settings: Settings) => {
  const policy = policyOf(settings)
  return { powers: [...powersOf(policy)].sort(), numbers: numbersOf(policy) }
}

describe('an untrusted layer', () => {
  test('never widens a verdict, a limit or a choice, whatever it says', () => {
    fc.assert(
      fc.property(users, fc.array(hostile, { minLength: 1, maxLength: 2 }), (trusted, untrusted) => {
        const before = policyOf(merge({ trusted }).settings)
        const after = policyOf(merge({ trusted, untrusted }).settings)
        expect(newPowers(after, before)).toEqual([])
      }),
      { numRuns: 400 },
    )
  })

  test('has its twin: a user who says the same may widen', () => {
    const said = { trusted: [profileLayer('strict', world)] }
    const wider = { trusted: [profileLayer('strict', world), profileLayer('dev', world)] }
    expect(newPowers(policyOf(merge(wider).settings), policyOf(merge(said).settings))).toContain(
      'mode up to gateway',
    )
  })

  test('never widens where no layer of the user said anything at all', () => {
    fc.assert(
      fc.property(hostile, ({ settings }) => {
        expect(newPowers(policyOf(narrow({}, settings)), policyOf({}))).toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  test('narrows the same before and after another, and twice as much as once', () => {
    fc.assert(
      fc.property(users, hostile, hostile, (trusted, a, b) => {
        const { settings } = merge({ trusted })
        const ab = narrow(narrow(settings, a.settings), b.settings)
        const ba = narrow(narrow(settings, b.settings), a.settings)
        expect(allOf(ab)).toEqual(allOf(ba))
        const once = narrow(settings, a.settings)
        expect(allOf(narrow(once, a.settings))).toEqual(allOf(once))
      }),
      { numRuns: 200 },
    )
  })

  test('that says nothing changes nothing', () => {
    fc.assert(
      fc.property(users, trusted => {
        const { settings } = merge({ trusted })
        expect(allOf(narrow(settings, {}))).toEqual(allOf(settings))
      }),
      { numRuns: 50 },
    )
  })
})

describe('the layers of the user', () => {
  test('fold the same however they are grouped', () => {
    const any = anyLayer('user').map(layer => layer.settings)
    fc.assert(
      fc.property(any, any, any, (a, b, c) => {
        expect(grow(grow(a, b), c)).toEqual(grow(a, grow(b, c)))
      }),
      { numRuns: 200 },
    )
  })
})

describe('with --allow-user-expansion', () => {
  const isListed = (power: string, { expanded }: Merged): boolean => {
    const keys = expanded.map(({ key }) => key as string)
    const [verb = '', object = ''] = power.split(' ')
    if (verb === 'read' || verb === 'write')
      return expanded.some(
        ({ key, item }) =>
          (key === 'files.write' || (key === 'files.read' && verb === 'read')) &&
          isWithin(object, (item as PathGrant).path),
      )
    if (verb === 'env') return expanded.some(({ key, item }) => key === 'env' && item === object)
    return keys.some(key => (KEYS[verb] ?? [`limits.${verb}`, `exec.${verb}`]).includes(key))
  }
  const KEYS: Readonly<Record<string, readonly string[]>> = {
    ...KEYS_OF_POWERS,
    connect: ['network.http', 'network.tcp', 'network.groups', 'network.mode'],
    timeout: ['exec.timeout', 'exec.ceiling'],
  }

  test('every power that a layer adds is in the list that is printed', () => {
    fc.assert(
      fc.property(users, hostile, (trusted, layer) => {
        const merged = merge({ trusted, untrusted: [layer], allowUserExpansion: true })
        const added = newPowers(policyOf(merged.settings), policyOf(merged.own))
        expect(added.filter(power => !isListed(power, merged))).toEqual([])
      }),
      { numRuns: 400 },
    )
  })

  test('a file that the user denied or that is protected stays so', () => {
    fc.assert(
      fc.property(users, hostile, (trusted, layer) => {
        const merged = merge({ trusted, untrusted: [layer], allowUserExpansion: true })
        const [own, after] = [policyOf(merged.own), policyOf(merged.settings)]
        for (const path of PATHS)
          for (const access of ['read', 'write'] as const) {
            const before = decideFile(own, path, access)
            if (!before.ok && (before.reason === 'denied-by-rule' || before.reason === 'protected'))
              expect([path, access, decideFile(after, path, access).ok]).toEqual([path, access, false])
          }
      }),
      { numRuns: 200 },
    )
  })

  test('offline, once said by the user, stays', () => {
    fc.assert(
      fc.property(users, hostile, (trusted, layer) => {
        const merged = merge({ trusted, untrusted: [layer], allowUserExpansion: true })
        if (merged.own['network.offline']?.value === true)
          expect(merged.settings['network.offline']?.value).toBe(true)
      }),
      { numRuns: 100 },
    )
  })
})

/** No widening is missed: whatever two policies are, each new power of the second is in the list, marked. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyDocument } from '../../../test/arbitrary/layer.ts'
import { policyOf } from '../../../test/arbitrary/policy.ts'
import { KEYS_OF_POWERS, newPowers } from '../../../test/arbitrary/powers.ts'
import { PROFILE_NAMES } from '../settings.ts'
import { comparePolicies } from './difference.ts'

/** The keys of which one must be marked when a power of this kind is new. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  ...KEYS_OF_POWERS,
  read: ['files.read', 'files.write', 'files.deny'],
  write: ['files.read', 'files.write', 'files.deny', 'files.protect'],
  connect: [
    'network.http',
    'network.tcp',
    'network.groups',
    'network.deny',
    'network.mode',
    'network.offline',
  ],
  env: ['env'],
}

const documents = anyDocument('user')

/** Two documents of which one has an entry less. */
const shrunk = fc.tuple(documents, fc.nat(), fc.nat()).map(([document, section, key]) => {
  const sections = Object.entries(document)
  const [name = '', value = {}] = sections[section % Math.max(1, sections.length)] ?? []
  if (typeof value !== 'object' || Array.isArray(value)) return { one: document, name }
  const { [Object.keys(value)[key % Math.max(1, Object.keys(value).length)] ?? '']: _gone, ...rest } =
    value as Record<string, unknown>
  return { one: { ...document, [name]: rest }, other: document }
})

/**
 * Documents of a project, without denied and protected files. A more specific grant of the user wins over those, even if it
 * adds nothing to the user's own policy.
 */
const limits = anyDocument('untrusted').map(document => {
  const { files, ...others } = document as { files?: { deny?: unknown; protect?: unknown } }
  const { deny: _deny, protect: _protect, ...grants } = files ?? {}
  return { ...others, files: grants }
})

describe('the difference of two policies', () => {
  test('marks every power that is new, under a key that brings it', () => {
    fc.assert(
      fc.property(documents, documents, (one, other) => {
        const [before, after] = [policyOf(one), policyOf(other)]
        const marked = new Set<string>(
          comparePolicies(before, after)
            .filter(({ widens }) => widens)
            .map(({ key }) => key),
        )
        const missed = newPowers(after, before).filter(power => {
          const word = power.split(' ')[0] ?? ''
          return !(KEYS[word] ?? [`limits.${word}`, `exec.${word}`]).some(key => marked.has(key))
        })
        expect(missed).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  test('marks it also when one entry alone is new or gone, where nothing else could be marked', () => {
    fc.assert(
      fc.property(shrunk, fc.boolean(), ({ one, other }, turned) => {
        if (other === undefined) return
        const [before, after] = turned ? [policyOf(other), policyOf(one)] : [policyOf(one), policyOf(other)]
        const powers = newPowers(after, before)
        const isMarked = comparePolicies(before, after).some(({ widens }) => widens)
        expect([powers, powers.length === 0 || isMarked]).toEqual([powers, true])
      }),
      { numRuns: 1000 },
    )
  })

  test('that marks nothing under any profile widens nothing either beneath what a project takes away', () => {
    const profiles = [{}, ...PROFILE_NAMES.map(profile => ({ profile }))]
    fc.assert(
      fc.property(shrunk, limits, ({ one, other }, limit) => {
        if (other === undefined) return
        for (const [from, to] of [
          [one, other],
          [other, one],
        ] as const) {
          const isMarked = profiles.some(profile =>
            comparePolicies(policyOf({ ...from, ...profile }), policyOf({ ...to, ...profile })).some(
              ({ widens }) => widens,
            ),
          )
          if (!isMarked) expect(newPowers(policyOf(to, limit), policyOf(from, limit))).toEqual([])
        }
      }),
      { numRuns: 500 },
    )
  })

  test('is empty for a policy and itself, and lists each entry once', () => {
    fc.assert(
      fc.property(documents, documents, (one, other) => {
        expect(comparePolicies(policyOf(one), policyOf(one))).toEqual([])
        const told = comparePolicies(policyOf(one), policyOf(other)).map(
          ({ key, change, item }) => `${key} ${change} ${item}`,
        )
        expect(told.length).toBe(new Set(told).size)
      }),
      { numRuns: 200 },
    )
  })
})

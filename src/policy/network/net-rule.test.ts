import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Address, parseAddress } from './address.ts'
import { type Destination, decideConnection } from './decide-connection.ts'
import { parseAllowRule, parseDenyRule } from './endpoint.ts'
import { HOST_SERVICE, type Host } from './host.ts'
import { type AllowRule, covers, type DenyRule, intersect, overlapping, printRule } from './net-rule.ts'
import { compileNetwork } from './network.ts'
import type { Port } from './port.ts'

/** A few names and ports, so that rules and targets intersect often. */
const HOSTS = ['a.test', 'b.a.test', 'c.b.a.test', 'ba.test', 'd.test', 'a.test.evil.example'] as Host[]
const ADDRESSES = ['203.0.113.7', '10.0.0.1', '2001:db9::7'] as Address[]
const PORTS = [22, 443] as Port[]

const host = fc.constantFrom(...HOSTS)
const address = fc.constantFrom(...ADDRESSES)
const port = fc.constantFrom(...PORTS)
const anyPort = fc.constantFrom<(Port | 'any')[]>(...PORTS, 'any')

const ruleAt = <P extends Port | 'any'>(ports: fc.Arbitrary<P>) =>
  fc.oneof(
    fc.record({ kind: fc.constant('name' as const), host, port: ports }),
    fc.record({ kind: fc.constant('wildcard' as const), suffix: host, port: ports }),
    fc.record({ kind: fc.constant('address' as const), address, port: ports }),
    fc.record({ kind: fc.constant('host-service' as const), port: ports }),
  )
const allowRule: fc.Arbitrary<AllowRule> = ruleAt(port)
const denyRule: fc.Arbitrary<DenyRule> = ruleAt(anyPort)

const TARGETS: Destination[] = [
  ...[...HOSTS, 'x.a.test' as Host, 'evil.example' as Host, HOST_SERVICE as Host].map(name => ({ name })),
  ...ADDRESSES.map(address => ({ address })),
]

const source = { layer: 'test', place: undefined }
const allowedBy = (allow: readonly AllowRule[], deny: readonly DenyRule[] = []): string[] => {
  const index = compileNetwork({
    mode: 'gateway',
    offline: false,
    allow: allow.map(rule => ({ rule, source })),
    deny: deny.map(rule => ({ rule, source })),
  })
  return TARGETS.flatMap(to =>
    PORTS.filter(port => decideConnection(index, to, port).ok).map(port => `${JSON.stringify(to)}:${port}`),
  )
}

test('a printed rule parses to the same rule', () => {
  const notPublic = (): boolean => false
  fc.assert(
    fc.property(
      allowRule,
      rule => void expect(parseAllowRule(printRule(rule), notPublic)).toEqual({ ok: true, value: rule }),
    ),
  )
  fc.assert(
    fc.property(
      denyRule,
      rule => void expect(parseDenyRule(printRule(rule), notPublic)).toEqual({ ok: true, value: rule }),
    ),
  )
  fc.assert(
    fc.property(fc.ipV6(), fc.ipV4(), port, (six, four, port) => {
      for (const text of [six, four]) {
        const parsed = parseAddress(text)
        if (!parsed.ok) throw new Error(parsed.why)
        const rule: AllowRule = { kind: 'address', address: parsed.value, port }
        const again = parseAllowRule(printRule(rule), notPublic)
        if (again.ok) expect(again.value).toEqual(rule)
      }
    }),
  )
})

test('the intersection of two grants allows exactly what both allow', () => {
  fc.assert(
    fc.property(allowRule, allowRule, (a, b) => {
      const both = intersect(a, b)
      const one = new Set(allowedBy([a]))
      expect(allowedBy(both === undefined ? [] : [both])).toEqual(
        allowedBy([b]).filter(target => one.has(target)),
      )
    }),
    { numRuns: 1000 },
  )
})

test('the intersection of grants does not depend on their order or number', () => {
  const and = (a: AllowRule | undefined, b: AllowRule | undefined) => a && b && intersect(a, b)
  fc.assert(
    fc.property(allowRule, allowRule, allowRule, (a, b, c) => {
      expect(intersect(a, a)).toEqual(a)
      expect(intersect(a, b)).toEqual(intersect(b, a))
      expect(and(and(a, b), c)).toEqual(and(a, and(b, c)))
    }),
    { numRuns: 1000 },
  )
})

test('the lookup of overlapping grants finds the same as comparing every pair', () => {
  const meets = (rule: AllowRule, list: readonly AllowRule[]) =>
    new Set(
      list
        .map(other => intersect(rule, other))
        .filter(both => both !== undefined)
        .map(printRule),
    )
  fc.assert(
    fc.property(allowRule, fc.array(allowRule, { maxLength: 8 }), (rule, list) => {
      expect(meets(rule, overlapping(list)(rule))).toEqual(meets(rule, list))
    }),
    { numRuns: 2000 },
  )
})

test('a rule that covers another allows at least as much', () => {
  fc.assert(
    fc.property(allowRule, allowRule, (outer, inner) => {
      const wide = new Set(allowedBy([outer]))
      const isWithin = allowedBy([inner]).every(target => wide.has(target))
      // A wildcard may be within another rule only by the names this test knows, so the reverse holds for one endpoint.
      if (covers(outer, inner)) expect(isWithin).toBe(true)
      else if (inner.kind !== 'wildcard') expect(isWithin).toBe(false)
    }),
    { numRuns: 1000 },
  )
})

test('one more denial never allows more, and what it covers is denied whatever else is allowed', () => {
  fc.assert(
    fc.property(
      fc.array(allowRule, { maxLength: 6 }),
      fc.array(denyRule, { maxLength: 3 }),
      denyRule,
      (allow, deny, extra) => {
        const before = new Set(allowedBy(allow, deny))
        const after = allowedBy(allow, [...deny, extra])
        expect(after.every(target => before.has(target))).toBe(true)
        const stillAllowed = allow.filter(rule => rule.kind !== 'wildcard' && covers(extra, rule))
        const denied = new Set(stillAllowed.flatMap(rule => allowedBy([rule])))
        expect(after.filter(target => denied.has(target))).toEqual([])
      },
    ),
    { numRuns: 1000 },
  )
})

test('one more grant never allows less', () => {
  fc.assert(
    fc.property(
      fc.array(allowRule, { maxLength: 6 }),
      allowRule,
      fc.array(denyRule, { maxLength: 3 }),
      (allow, extra, deny) => {
        const after = new Set(allowedBy([...allow, extra], deny))
        expect(allowedBy(allow, deny).every(target => after.has(target))).toBe(true)
      },
    ),
    { numRuns: 500 },
  )
})

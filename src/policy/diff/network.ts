import { type AllowRule, covers, type DenyRule, listOf, overlapping, printRule } from '../network/net-rule.ts'
import type { Policy } from '../policy.ts'
import type { Sourced } from '../source.ts'
import { NETWORK_MODES } from '../vocabulary.ts'
import { changed, compareNames, type Difference } from './row.ts'

/** A name that a wildcard already allowed is not new. A denial that a wider one replaces is not lost. */
export function compareNetwork(before: Policy, after: Policy): Difference[] {
  const [had, has] = [before.network, after.network]
  const words = (value: boolean) => (value ? 'yes' : 'no')
  return [
    ...changed('network.offline', [words(had.offline), words(has.offline)], !has.offline, after),
    ...changed(
      'network.mode',
      [had.mode, has.mode],
      NETWORK_MODES.indexOf(has.mode) > NETWORK_MODES.indexOf(had.mode),
      after,
    ),
    ...changed('network.ask', [had.ask, has.ask], has.ask === 'hold', after),
    // A group also brings mirrors, which may resolve to private addresses.
    ...compareNames('network.groups', had.groups, has.groups),
    ...compareAllowed(had.allow, has.allow),
    ...compareDenied(had.deny, has.deny),
  ]
}

const byText = <T extends DenyRule>(rules: readonly Sourced<T>[]): ReadonlyMap<string, Sourced<T>> =>
  new Map(rules.map(item => [printRule(item.rule), item]))

function compareAllowed(
  before: readonly Sourced<AllowRule>[],
  after: readonly Sourced<AllowRule>[],
): Difference[] {
  const [had, has] = [byText(before), byText(after)]
  const near = overlapping(before.map(({ rule }) => rule))
  const isKnown = (rule: AllowRule) => near(rule).some(known => covers(known, rule))
  const row = (item: string, rule: AllowRule) =>
    ({ key: listOf(rule) === 'http' ? 'network.http' : 'network.tcp', item, was: undefined }) as const
  return [
    ...[...has]
      .filter(([text]) => !had.has(text))
      .map(([text, { rule, source }]) => ({
        ...row(text, rule),
        change: 'added' as const,
        widens: !isKnown(rule),
        source,
      })),
    ...[...had]
      .filter(([text]) => !has.has(text))
      .map(([text, { rule }]) => ({
        ...row(text, rule),
        change: 'removed' as const,
        widens: false,
        source: undefined,
      })),
  ]
}

function compareDenied(
  before: readonly Sourced<DenyRule>[],
  after: readonly Sourced<DenyRule>[],
): Difference[] {
  const [had, has] = [byText(before), byText(after)]
  const row = (item: string) => ({ key: 'network.deny', item, was: undefined }) as const
  return [
    ...[...has]
      .filter(([text]) => !had.has(text))
      .map(([text, { source }]) => ({ ...row(text), change: 'added' as const, widens: false, source })),
    ...[...had]
      .filter(([text]) => !has.has(text))
      .map(([text, { rule }]) => ({
        ...row(text),
        change: 'removed' as const,
        widens: !after.some(other => covers(other.rule, rule)),
        source: undefined,
      })),
  ]
}

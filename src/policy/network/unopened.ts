/**
 * Which hosts the gateway opens, and `"open": false`, with which TLS to a host passes through. A policy that needs the
 * requests of such a host is refused: it could not be enforced.
 */
import { PenError } from '../../base/error.ts'
import type { Trust } from '../files/path.ts'
import { type Parsed, refuse, type Sourced } from '../source.ts'
import type { Allowed } from './decide-connection.ts'
import { type IsPublicSuffix, parseHttpRule } from './endpoint.ts'
import { type AllowRule, covers, type DenyRule, printEndpoint, printRule } from './net-rule.ts'
import type { NetworkIndex } from './network.ts'
import { isForHost, type Secret } from './secret.ts'

interface Rules {
  readonly allow: readonly Sourced<AllowRule>[]
  readonly deny: readonly Sourced<DenyRule>[]
  readonly secrets: readonly Sourced<Secret>[]
}

interface Context {
  readonly trust: Trust
  readonly isPublicSuffix: IsPublicSuffix
}

/** Parses an entry of `network.http`. */
export function hostEntry(
  said: string | { readonly host: string; readonly open: false },
  { trust, isPublicSuffix }: Context,
): Parsed<AllowRule> {
  if (typeof said === 'string') return parseHttpRule(said, isPublicSuffix)
  if (trust !== 'user') return refuse('a project’s document cannot set "open"', 'write the host as a text')
  const rule = parseHttpRule(said.host, isPublicSuffix)
  if (!rule.ok) return rule
  if (rule.value.request !== undefined)
    return refuse('an unopened host has no rules about requests', 'name the host and the port only')
  return { ok: true, value: { ...rule.value, open: false } }
}

/** The user wants a sign-in as without pen: its tokens go inside. */
export const isUnopenedSignIn = (
  { rule: { from, to } }: Sourced<Secret>,
  allow: readonly Sourced<AllowRule>[],
): boolean =>
  from.kind === 'oauth' &&
  allow.some(({ rule }) => rule.open === false && to.some(receiver => overlaps(receiver.rule, rule)))

/** Throws when a secret or a denial of requests needs a host that must stay unopened. */
export function checkUnopened({ allow, deny, secrets }: Rules): void {
  for (const { rule, source } of allow) {
    if (rule.open !== false) continue
    const secret = secrets.find(({ rule: { to } }) => to.some(to => !to.plain && overlaps(to.rule, rule)))
    const denial = deny.find(other => other.rule.request !== undefined && overlaps(other.rule, rule))
    if (secret === undefined && denial === undefined) continue
    const host = printEndpoint(rule, rule.port)
    throw new PenError('CONFIG_VALUE', {
      what: `network.http: ${host} has "open": false, and ${
        secret === undefined
          ? `the denial ${printRule(denial?.rule ?? rule)} needs its requests`
          : `the secret ${secret.rule.name} goes there`
      }`,
      at: source.place ?? source.layer,
      hint:
        secret === undefined
          ? `remove the denial, or deny the whole host: pen deny ${host}`
          : `remove "open": false, or the secret: pen secret remove ${secret.rule.name}`,
    })
  }
}

/** The hosts of which TLS is opened, and the reason. A rule for the whole host allows its requests unopened. */
export function openedHosts({ allow, deny, secrets }: Rules) {
  const denials = deny.filter(({ rule }) => rule.request !== undefined)
  const isWhole = (rule: AllowRule): boolean =>
    allow.some(({ rule: other }) => other.request === undefined && covers(other, withoutRequest(rule))) &&
    !denials.some(({ rule: other }) => overlaps(other, rule))
  const rules = [
    ...allow.filter(({ rule }) => rule.request !== undefined && !isWhole(rule)),
    ...denials.filter(({ rule }) => allow.some(({ rule: other }) => overlaps(rule, other))),
  ]
  return [
    ...rules.map(({ rule }) => ({ rule: printEndpoint(rule, rule.port), from: printRule(rule) })),
    ...secrets.flatMap(({ rule: { name, to } }) =>
      to
        .filter(({ plain }) => !plain)
        .map(({ rule }) => ({ rule: printEndpoint(rule, rule.port), from: `secret ${name}` })),
    ),
  ]
}

/** Why a connection was opened, for a program that does not take it. */
export function openedBy(index: NetworkIndex, { requests, dial }: Allowed): string {
  const secret = index.secrets.find(({ rule }) => isForHost(rule, dial))
  if (secret !== undefined) return `the secret ${secret.rule.name}`
  const rule = requests?.deny[0]?.rule ?? requests?.allow[0]?.rule
  return rule === undefined ? 'a rule about requests' : `the rule ${printRule(rule)}`
}

function withoutRequest<R extends DenyRule>({ request: _, ...rule }: R): Omit<R, 'request'> & DenyRule {
  return rule as Omit<R, 'request'> & DenyRule
}

function overlaps(a: DenyRule, b: AllowRule): boolean {
  const [one, other] = [withoutRequest(a), withoutRequest(b)]
  return covers(one, other) || covers(other, { ...one, port: one.port === 'any' ? other.port : one.port })
}

/** Suggests the smallest change that would allow the refused connections. A person decides; nothing is applied here. */

import type { NetworkPolicy } from '../policy.ts'
import { isBackgroundHost } from './background-hosts.ts'
import { type Destination, decideConnection, exactRule } from './decide-connection.ts'
import { type IsPublicSuffix, parseAllowRule } from './endpoint.ts'
import { mayBeOffered } from './holdable.ts'
import { type AllowRule, covers, printRule } from './net-rule.ts'
import type { Port } from './port.ts'

/** A destination that a sandbox dialled, and how often. */
export interface DialAttempt {
  readonly to: Destination
  readonly port: Port
  readonly count: number
}

export interface Suggestion {
  /** One rule for each destination, as narrow as possible. */
  readonly add: readonly { readonly rule: AllowRule; readonly count: number }[]
  /** Wildcards that replace several of these rules. Each also allows names that were not dialled. */
  readonly wildcards: readonly { readonly rule: AllowRule; readonly covers: number }[]
  /** Services of this machine, its network or its cloud. The user must allow these explicitly. */
  readonly withheld: readonly { readonly target: string; readonly why: string; readonly fix: string }[]
  /** Denied by a rule, so an allow rule has no effect. */
  readonly denied: readonly { readonly target: string; readonly fix: string }[]
}

/** With fewer hosts, single rules are better than a wildcard. */
const WILDCARD_THRESHOLD = 3

export function suggest(
  network: NetworkPolicy,
  wanted: readonly DialAttempt[],
  isPublicSuffix: IsPublicSuffix,
): Suggestion {
  const add: { rule: AllowRule; count: number }[] = []
  const withheld: Suggestion['withheld'][number][] = []
  const denied: Suggestion['denied'][number][] = []
  for (const { to, port, count } of wanted) {
    if ('name' in to && isBackgroundHost(to.name)) continue
    const verdict = decideConnection(network.index, to, port)
    if (verdict.ok) continue
    const rule = exactRule(to, port)
    const { why, fix, reason } = verdict
    if (mayBeOffered(verdict, to)) add.push({ rule, count })
    else if (reason === 'denied-by-rule') denied.push({ target: printRule(rule), fix })
    else withheld.push({ target: printRule(rule), why, fix })
  }
  add.sort((a, b) => compare(printRule(a.rule), printRule(b.rule)))
  return { add, wildcards: wildcardsFor(add, isPublicSuffix), withheld, denied }
}

function wildcardsFor(add: Suggestion['add'], isPublicSuffix: IsPublicSuffix): Suggestion['wildcards'] {
  const found = new Map<string, { rule: AllowRule; covers: number }>()
  for (const { rule } of add) {
    if (rule.kind !== 'name') continue
    const parent = rule.host.slice(rule.host.indexOf('.') + 1)
    // No wildcard is offered under a public suffix, or where the grammar refuses one.
    const wide = parseAllowRule(`*.${parent}:${rule.port}`, isPublicSuffix)
    if (!wide.ok) continue
    const count = add.filter(({ rule: other }) => covers(wide.value, other)).length
    if (count >= WILDCARD_THRESHOLD) found.set(printRule(wide.value), { rule: wide.value, covers: count })
  }
  return [...found.values()]
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** From what was refused to the smallest change that would let it through. Nothing here is applied: a person reads it. */

import type { NetworkPolicy } from '../policy.ts'
import { isBackgroundHost } from './background-hosts.ts'
import { type Destination, decideConnection } from './decide-connection.ts'
import { type IsPublicSuffix, parseAllowRule } from './endpoint.ts'
import { mayBeOffered } from './holdable.ts'
import { type AllowRule, covers, printRule } from './net-rule.ts'
import { exactRule } from './once-rules.ts'
import type { Port } from './port.ts'

/** What a sandbox dialled, however that went. */
export interface DialAttempt {
  readonly to: Destination
  readonly port: Port
  readonly count: number
}

export interface Suggestion {
  /** One rule for each, as narrow as rules are. */
  readonly add: readonly { readonly rule: AllowRule; readonly count: number }[]
  /** Shorter, and wider: each stands for several of these, and for names that nobody asked for. */
  readonly wildcards: readonly { readonly rule: AllowRule; readonly covers: number }[]
  /** Of this machine, its network or its cloud: whoever wants them open says so by themselves. */
  readonly withheld: readonly { readonly target: string; readonly why: string; readonly fix: string }[]
  /** Denied by name: a rule would not help. */
  readonly denied: readonly { readonly target: string; readonly fix: string }[]
}

/** Fewer are better named one by one. */
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
    // Under a public suffix, or anywhere else where no rule may have a star, there is none.
    const wide = parseAllowRule(`*.${parent}:${rule.port}`, isPublicSuffix)
    if (!wide.ok) continue
    const count = add.filter(({ rule: other }) => covers(wide.value, other)).length
    if (count >= WILDCARD_THRESHOLD) found.set(printRule(wide.value), { rule: wide.value, covers: count })
  }
  return [...found.values()]
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

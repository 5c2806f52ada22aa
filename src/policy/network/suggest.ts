/** Suggests the smallest change that would allow the refused connections. A person decides; nothing is applied here. */

import type { NetworkPolicy } from '../policy.ts'
import { isBackgroundHost } from './background-hosts.ts'
import { type Destination, decideConnection, exactRule } from './decide-connection.ts'
import { decideRequest, type RequestVerdict, requestRule } from './decide-request.ts'
import { type IsPublicSuffix, parseAllowRule } from './endpoint.ts'
import { mayBeOffered } from './holdable.ts'
import { type AllowRule, covers, printRule } from './net-rule.ts'
import type { Port } from './port.ts'
import { readRequestPath } from './request-path.ts'

/** A destination that a sandbox dialled, and how often. */
export interface DialAttempt {
  readonly to: Destination
  readonly port: Port
  readonly count: number
  /** Set when the host has rules about requests. The path is in its exact form. */
  readonly request?: { readonly method: string; readonly path: string }
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
  for (const { to, port, count, request } of wanted) {
    if ('name' in to && isBackgroundHost(to.name)) continue
    const dial = exactRule(to, port)
    const rule = request === undefined ? dial : requestRule(dial, { ...request, exact: request.path })
    // A path that no command can hold.
    if (rule === undefined) continue
    const verdict = decideAttempt(network, { to, port, request })
    if (verdict.ok) continue
    const { why, fix, reason } = verdict
    if (mayBeOffered(verdict, to)) add.push({ rule, count })
    else if (reason === 'denied-by-rule') denied.push({ target: printRule(rule), fix })
    else withheld.push({ target: printRule(rule), why, fix })
  }
  add.sort((a, b) => compare(printRule(a.rule), printRule(b.rule)))
  return { add, wildcards: wildcardsFor(add, isPublicSuffix), withheld, denied }
}

function decideAttempt(
  { index }: NetworkPolicy,
  { to, port, request }: Pick<DialAttempt, 'to' | 'port'> & { readonly request: DialAttempt['request'] },
): RequestVerdict {
  const verdict = decideConnection(index, to, port)
  const read = request === undefined ? undefined : readRequestPath(request.path)
  if (!verdict.ok || request === undefined || read?.ok !== true) return verdict
  return decideRequest(verdict, { method: request.method, ...read.value })
}

function wildcardsFor(add: Suggestion['add'], isPublicSuffix: IsPublicSuffix): Suggestion['wildcards'] {
  const found = new Map<string, { rule: AllowRule; covers: number }>()
  const hosts = add.filter(({ rule }) => rule.request === undefined)
  for (const { rule } of hosts) {
    if (rule.kind !== 'name') continue
    const parent = rule.host.slice(rule.host.indexOf('.') + 1)
    // No wildcard is offered under a public suffix, or where the grammar refuses one.
    const wide = parseAllowRule(`*.${parent}:${rule.port}`, isPublicSuffix)
    if (!wide.ok) continue
    const count = hosts.filter(({ rule: other }) => covers(wide.value, other)).length
    if (count >= WILDCARD_THRESHOLD) found.set(printRule(wide.value), { rule: wide.value, covers: count })
  }
  return [...found.values()]
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

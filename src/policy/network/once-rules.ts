/** Rules for one connection, and rules that expire. Denials still win over all of them. */

import type { NetworkPolicy } from '../policy.ts'
import type { Sourced } from '../source.ts'
import { type Destination, exactRule } from './decide-connection.ts'
import { type AllowRule, covers, type DenyRule } from './net-rule.ts'
import { compileNetwork, type NetworkIndex } from './network.ts'
import type { Port } from './port.ts'

export interface OnceRules {
  readonly allow: readonly Sourced<AllowRule>[]
  readonly deny: readonly Sourced<DenyRule>[]
}

/** The first unused rule that matches this connection. */
export function findOnce<R extends DenyRule>(
  rules: readonly Sourced<R>[],
  to: Destination,
  port: Port,
  isSpent: (id: string) => boolean,
): Sourced<R> | undefined {
  if (rules.length === 0) return undefined
  const wanted = exactRule(to, port)
  return rules.find(({ rule, source }) => !isSpent(source.temporary?.once ?? '') && covers(rule, wanted))
}

/** The current rules plus one grant, for the connection that used up that grant. */
export const withGrant = (network: NetworkPolicy, grant: Sourced<AllowRule>): NetworkIndex =>
  compileNetwork({ ...network, allow: [...network.allow, grant], mirrors: [...network.index.mirrors] })

/** When the first rule expires; undefined when none does. */
export function nextExpiry({ allow, deny, once }: NetworkPolicy): number | undefined {
  let next: number | undefined
  for (const { source } of [...allow, ...deny, ...once.allow, ...once.deny]) {
    const until = source.temporary?.until
    if (until !== undefined && until < (next ?? Infinity)) next = until
  }
  return next
}

/** The policy without expired rules. It reads no file, so nothing on disk can keep a rule alive. */
export function withoutExpired(network: NetworkPolicy, now: number): NetworkPolicy {
  const lives = ({ source }: Sourced<unknown>): boolean => (source.temporary?.until ?? Infinity) > now
  const allow = network.allow.filter(lives)
  const deny = network.deny.filter(lives)
  const once = { allow: network.once.allow.filter(lives), deny: network.once.deny.filter(lives) }
  const index = compileNetwork({ ...network, allow, deny, mirrors: [...network.index.mirrors] })
  return { ...network, allow, deny, once, index }
}

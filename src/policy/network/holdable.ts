import type { NetworkPolicy } from '../policy.ts'
import { classifyAddress } from './address-class.ts'
import { isBackgroundHost } from './background-hosts.ts'
import type { Destination } from './decide-connection.ts'
import type { DenialReason, Denied } from './denial.ts'
import { HOST_SERVICE, isLocalName } from './host.ts'
import { type AllowRule, covers, listOf } from './net-rule.ts'

/** Denials for lack of a rule. Every other reason is an explicit decision. */
const UNDECIDED: ReadonlySet<DenialReason> = new Set([
  'not-allowed',
  'port-not-allowed',
  'literal-not-allowed',
  'request-not-allowed',
])

/** Whether a connection or request waits for a person: the policy asks for it, and the person's answer can have an effect. */
export function waitsForAnswer(
  network: NetworkPolicy,
  denied: Denied,
  to: Destination,
  rule: AllowRule,
): boolean {
  if (network.ask !== 'hold' || !mayBeOffered(denied, to)) return false
  return network.ceilings.every(
    ({ list, rules }) => list !== listOf(rule) || rules.some(other => covers(other, rule)),
  )
}

/**
 * Whether a person may be asked about a destination. A sandbox chooses what it dials and can repeat it until a person agrees.
 * So services of this machine, its network and its cloud are never offered: the user must write that rule.
 * Background hosts of agents are not offered either, because they would cause endless questions.
 */
export function mayBeOffered(denied: Denied, to: Destination): boolean {
  if (!UNDECIDED.has(denied.reason)) return false
  if ('address' in to) return classifyAddress(to.address) === 'public'
  return to.name !== HOST_SERVICE && !isLocalName(to.name) && !isBackgroundHost(to.name)
}

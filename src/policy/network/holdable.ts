import type { NetworkPolicy } from '../policy.ts'
import { classifyAddress } from './address-class.ts'
import { isBackgroundHost } from './background-hosts.ts'
import type { Destination } from './decide-connection.ts'
import type { DenialReason, Denied } from './denial.ts'
import { HOST_SERVICE, isLocalName } from './host.ts'
import { covers, listOf } from './net-rule.ts'
import { exactRule } from './once-rules.ts'
import type { Port } from './port.ts'

/** Refused because no rule names it. Every other reason is somebody's decision already. */
const UNDECIDED: ReadonlySet<DenialReason> = new Set([
  'not-allowed',
  'port-not-allowed',
  'literal-not-allowed',
])

/**
 * Whether a connection waits for a person: the policy says so, and an answer of theirs would count.
 */
export function waitsForAnswer(network: NetworkPolicy, denied: Denied, to: Destination, port: Port): boolean {
  if (network.ask !== 'hold' || !mayBeOffered(denied, to)) return false
  const rule = exactRule(to, port)
  return network.ceilings.every(
    ({ list, rules }) => list !== listOf(rule) || rules.some(other => covers(other, rule)),
  )
}

/**
 * Whether a person may be offered it. A sandbox chooses what it dials, and could ask until somebody agrees: so services of this
 * machine, of its network and of its cloud are not offered. Whoever wants them open writes the rule. Nor are hosts that agents
 * call in the background: a person would be asked about them again and again.
 */
export function mayBeOffered(denied: Denied, to: Destination): boolean {
  if (!UNDECIDED.has(denied.reason)) return false
  if ('address' in to) return classifyAddress(to.address) === 'public'
  return to.name !== HOST_SERVICE && !isLocalName(to.name) && !isBackgroundHost(to.name)
}

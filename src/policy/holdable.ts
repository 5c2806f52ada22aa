import { classifyAddress } from './address-class.ts'
import type { Destination } from './decide-connection.ts'
import type { DenialReason, Denied } from './denial.ts'
import { HOST_SERVICE, isLocalName } from './host.ts'

/** Refused because no rule names it. Every other reason is somebody's decision already. */
const UNDECIDED: ReadonlySet<DenialReason> = new Set([
  'not-allowed',
  'port-not-allowed',
  'literal-not-allowed',
])

/**
 * Whether a person may be asked. A sandbox chooses what it dials, and could ask until somebody agrees: so services of this
 * machine, of its network and of its cloud are not offered. Whoever wants them open writes the rule.
 */
export function mayBeHeld(denied: Denied, to: Destination): boolean {
  if (!UNDECIDED.has(denied.reason)) return false
  if ('address' in to) return classifyAddress(to.address) === 'public'
  return to.name !== HOST_SERVICE && !isLocalName(to.name)
}

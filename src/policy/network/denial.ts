import { type Source, type Sourced, showSource } from '../source.ts'
import { type Address, isIPv6 } from './address.ts'
import { type AddressClass, classifyAddress, embeddedIPv4 } from './address-class.ts'
import { HOST_SERVICE, type Host, isLocalName } from './host.ts'
import {
  type AllowRule,
  type DenyRule,
  type NetTarget,
  printEndpoint,
  printRule,
  ruleWord,
} from './net-rule.ts'
import type { TargetRules } from './network.ts'
import type { Port } from './port.ts'

/** Stable identifiers: the audit and the `x-pen-denied` header contain them. */
export type DenialReason =
  | 'offline'
  | 'network-off'
  | 'denied-by-rule'
  | 'not-allowed'
  | 'port-not-allowed'
  | 'address-not-allowed'
  | 'literal-not-allowed'
  | 'local-name'
  | 'request-not-allowed'
  | 'requests-only'

export interface Denied {
  readonly ok: false
  readonly reason: DenialReason
  /** One sentence for a person, without a full stop. It contains canonical names only. */
  readonly why: string
  /** The rule that denied. For a near miss: the rule that allows something close. */
  readonly rule: AllowRule | DenyRule | undefined
  readonly source: Source | undefined
  /** The command or change that would allow the connection. */
  readonly fix: string
}

export function deny(
  reason: DenialReason,
  why: string,
  fix: string,
  by?: Sourced<AllowRule | DenyRule>,
): Denied {
  return { ok: false, reason, why, rule: by?.rule, source: by?.source, fix }
}

/** The layer that `pen deny` writes and `pen forget` edits. */
const LIVE = 'live config'

export function denyByRule(by: Sourced<DenyRule>): Denied {
  const rule = printRule(by.rule)
  const { temporary, layer } = by.source
  const isForgettable = temporary !== undefined || layer === LIVE
  const fix = isForgettable
    ? `pen forget ${ruleWord(by.rule)}`
    : `take "${rule}" out of ${showSource(by.source)}`
  return deny('denied-by-rule', `denied by "${rule}"`, fix, by)
}

/** A sandbox that dials loopback through the gateway wants a service on the host. */
export function denyLoopback(target: Host | Address, port: Port): Denied {
  const why = `${target} means the sandbox itself; a service of this machine has another name`
  return deny('local-name', why, allowCommand({ kind: 'host-service' }, port))
}

export function denyAddress(address: Address, kind: AddressClass, port: Port): Denied {
  const target: NetTarget = { kind: 'address', address }
  if (kind === 'loopback' || kind === 'unspecified') return denyLoopback(address, port)
  if (kind === 'public')
    return deny('literal-not-allowed', `no rule names the address ${address}`, allowCommand(target, port))
  const why = `${address} is ${inWords(kind)} address, and no rule names it`
  return deny('address-not-allowed', why, fixFor(address, kind, port))
}

const NONE = 'none'

/** Offers only rules that the grammar in `endpoint.ts` accepts. */
function fixFor(address: Address, kind: AddressClass, port: Port): string {
  const inner = embeddedIPv4(address)
  if (inner !== undefined) {
    const { fix } = denyAddress(inner, classifyAddress(inner), port)
    return fix.startsWith(NONE) ? fix : `${fix}, and dial that instead`
  }
  if (kind === 'multicast' || kind === 'broadcast') return `${NONE}: such an address takes no connection`
  if (kind === 'link-local' && isIPv6(address)) return `${NONE}: it needs a zone id, which no rule can hold`
  // The gateway assigns these addresses to names. An unknown one comes from an earlier run.
  if (kind === 'benchmark' && !isIPv6(address))
    return `${NONE}: in a sandbox such an address belongs to a name: connect to the name`
  return allowCommand({ kind: 'address', address }, port)
}

/** `near` holds the rules that match the host at another port. */
export function denyName(
  host: Host,
  port: Port,
  near: TargetRules | undefined,
  apex: TargetRules | undefined,
): Denied {
  const target: NetTarget = { kind: 'name', host }
  const wrongPort = near && denyPort(target, port, near)
  if (wrongPort !== undefined) return wrongPort
  const fix = allowCommand(target, port)
  const wildcard = apex?.allow.get(port)
  if (wildcard !== undefined)
    return deny(
      'not-allowed',
      `"${printRule(wildcard.rule)}" means the names under ${host}, not ${host} itself`,
      fix,
      wildcard,
    )
  if (isLocalName(host))
    return deny('local-name', `${host} is a name of the local network, and no rule names it`, fix)
  return deny('not-allowed', `no rule allows ${host}`, fix)
}

/** Undefined when no port of the target is allowed. */
export function denyPort(target: NetTarget, port: Port, near: TargetRules): Denied | undefined {
  const [other] = near.allow.values()
  if (other === undefined) return undefined
  const ports = [...near.allow.keys()].slice(0, 5).join(', ')
  const why = `${printEndpoint(target, 'any')} is allowed at port ${ports}, not at ${port}`
  return deny('port-not-allowed', why, allowCommand(target, port), other)
}

export function denyHostService(port: Port, rules: TargetRules): Denied {
  const target: NetTarget = { kind: 'host-service' }
  const why = `no rule allows ${HOST_SERVICE}, the services of this machine`
  return denyPort(target, port, rules) ?? deny('not-allowed', why, allowCommand(target, port))
}

const allowCommand = (target: NetTarget, port: Port): string => `pen allow ${printRule({ ...target, port })}`

function inWords(kind: AddressClass): string {
  if (kind === 'embedded-v4') return 'an embedded IPv4'
  if (kind === 'cgnat') return 'a carrier-grade NAT'
  return `a ${kind}`
}

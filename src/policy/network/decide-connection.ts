import type { Source, Sourced } from '../source.ts'
import type { Address } from './address.ts'
import { classifyAddress } from './address-class.ts'
import {
  type Denied,
  deny,
  denyAddress,
  denyByRule,
  denyHostService,
  denyLoopback,
  denyName,
  denyPort,
} from './denial.ts'
import { HOST_SERVICE, type Host, isLoopbackName } from './host.ts'
import type { AllowRule, DenyRule } from './net-rule.ts'
import type { NetworkIndex, RequestRules, TargetRules } from './network.ts'
import type { Port } from './port.ts'

/** What a sandbox wants to reach: a name that it looked up, or an address that came from no lookup. */
export type Destination = { readonly name: Host } | { readonly address: Address }

/** What the gateway dials. A name must still be resolved, and every answer must pass `checkDial`. */
export type Dial = Exclude<AllowRule, { kind: 'wildcard' }>

/** What a connection dials if it is allowed. As a rule, it matches exactly this connection. */
export function exactRule(to: Destination, port: Port): Dial {
  if ('address' in to) return { kind: 'address', address: to.address, port }
  return to.name === HOST_SERVICE ? { kind: 'host-service', port } : { kind: 'name', host: to.name, port }
}

export interface Allowed {
  readonly ok: true
  readonly rule: AllowRule
  readonly source: Source
  readonly dial: Dial
  /** Set when each request must be judged too: see `decide-request.ts`. `whole`: no rule about a request is needed. */
  readonly requests?: RequestRules & { readonly whole: boolean }
}

export type ConnectionVerdict = Allowed | Denied

/** The verdict that an allow rule gives when no rule denies. */
export const allowedBy = ({ rule, source }: Sourced<AllowRule>, to: Destination, port: Port): Allowed => ({
  ok: true,
  rule,
  source,
  dial: exactRule(to, port),
})

/** The only place that judges a connection. The destination comes from a sandbox: hostile, but canonical. */
export function decideConnection(index: NetworkIndex, to: Destination, port: Port): ConnectionVerdict {
  const off = denyAll(index)
  if (off !== undefined) return off
  if ('address' in to) return decideAddress(index, to.address, port)
  return to.name === HOST_SERVICE ? decideHostService(index, port) : decideName(index, to.name, port)
}

/**
 * Judges an address that an allowed name resolved to. DNS answers are hostile. A name may resolve to a private or local
 * address only if a rule lists that address, or if the name is a configured mirror.
 */
export function checkDial(index: NetworkIndex, address: Address, dial: Dial): { readonly ok: true } | Denied {
  const off = denyAll(index)
  if (off !== undefined) return off
  const rules = index.addresses.get(address)
  const denied = rules && denial(rules, dial.port)
  if (denied !== undefined) return denyByRule(denied)
  const kind = classifyAddress(address)
  if (kind === 'public' && dial.kind !== 'address') return { ok: true }
  if (rules?.allow.has(dial.port)) return { ok: true }
  const isVouchedFor = dial.kind === 'name' && index.mirrors.has(dial.host)
  if (isVouchedFor && (kind === 'private' || kind === 'cgnat')) return { ok: true }
  return denyAddress(address, kind, dial.port)
}

function denyAll(index: NetworkIndex): Denied | undefined {
  if (index.offline) return deny('offline', 'the sandbox is offline', 'run without --offline')
  if (index.mode !== 'none') return undefined
  return deny('network-off', 'the policy has no network', 'set network.mode to "gateway"')
}

function decideName(index: NetworkIndex, host: Host, port: Port): ConnectionVerdict {
  const exact = index.names.get(host)
  let denied = exact && denial(exact, port)
  let allowed = exact?.allow.get(port)
  let near = exact?.allow.size ? exact : undefined
  const requests = { allow: requestsAt(exact, 'allow', port), deny: requestsAt(exact, 'deny', port) }
  if (index.suffixes.size > 0) {
    // Check every suffix, even after a match: a denial for a parent domain still wins.
    for (let dot = host.indexOf('.'); dot !== -1 && denied === undefined; dot = host.indexOf('.', dot + 1)) {
      const rules = index.suffixes.get(host.slice(dot + 1))
      if (rules === undefined) continue
      denied = denial(rules, port)
      allowed ??= rules.allow.get(port)
      requests.allow.push(...requestsAt(rules, 'allow', port))
      requests.deny.push(...requestsAt(rules, 'deny', port))
      if (rules.allow.size > 0) near ??= rules
    }
  }
  if (denied !== undefined) return denyByRule(denied)
  // No parser makes a rule for a loopback name. If one arrives another way, it opens nothing.
  if (isLoopbackName(host)) return denyLoopback(host, port)
  return (
    allowedWith(allowed, requests, { name: host }, port) ??
    denyName(host, port, near, index.suffixes.get(host))
  )
}

/** Allowed as a whole, or for requests. Undefined when nothing allows it. */
function allowedWith(
  allowed: Sourced<AllowRule> | undefined,
  requests: RequestRules,
  to: Destination,
  port: Port,
): Allowed | undefined {
  const by = allowed ?? requests.allow[0]
  if (by === undefined) return undefined
  const whole = allowed !== undefined
  const verdict = allowedBy(by, to, port)
  return whole && requests.deny.length === 0 ? verdict : { ...verdict, requests: { ...requests, whole } }
}

function requestsAt<E extends 'allow' | 'deny'>(
  rules: TargetRules | undefined,
  effect: E,
  port: Port,
): RequestRules[E][number][] {
  return rules === undefined || rules.requests[effect].length === 0
    ? []
    : rules.requests[effect].filter(({ rule }) => rule.port === 'any' || rule.port === port)
}

function decideAddress(index: NetworkIndex, address: Address, port: Port): ConnectionVerdict {
  const rules = index.addresses.get(address)
  const denied = rules && denial(rules, port)
  if (denied !== undefined) return denyByRule(denied)
  const allowed = rules?.allow.get(port)
  if (allowed !== undefined) return allowedBy(allowed, { address }, port)
  const wrongPort = rules && denyPort({ kind: 'address', address }, port, rules)
  return wrongPort ?? denyAddress(address, classifyAddress(address), port)
}

function decideHostService({ hostService }: NetworkIndex, port: Port): ConnectionVerdict {
  const denied = denial(hostService, port)
  if (denied !== undefined) return denyByRule(denied)
  const requests = {
    allow: requestsAt(hostService, 'allow', port),
    deny: requestsAt(hostService, 'deny', port),
  }
  const to = { name: HOST_SERVICE as Host }
  return allowedWith(hostService.allow.get(port), requests, to, port) ?? denyHostService(port, hostService)
}

function denial({ deny: rules }: TargetRules, port: Port): Sourced<DenyRule> | undefined {
  return rules.size === 0 ? undefined : (rules.get('any') ?? rules.get(port))
}

import { type Address, isIPv6 } from './address.ts'
import { classifyAddress } from './address-class.ts'
import { HOST_SERVICE, type Host, isUnder } from './host.ts'
import type { Port } from './port.ts'
import { coversRequest, intersectRequests, printPattern, type RequestPattern } from './request-pattern.ts'

/** The target of a rule. A name rule never matches `host.pen.internal` or an address, and the reverse. */
export type NetTarget =
  | { readonly kind: 'name'; readonly host: Host }
  | { readonly kind: 'wildcard'; readonly suffix: Host }
  | { readonly kind: 'address'; readonly address: Address }
  | { readonly kind: 'host-service' }

/** One endpoint, or all subdomains of a name at one port. With `request`, only the HTTP requests that match it. */
type NetRule<P extends Port | 'any' = Port> = NetTarget & {
  readonly port: P
  readonly request?: RequestPattern
  /** TLS to it passes through, or the policy is refused: see `unopened.ts`. */
  readonly open?: false
}

/** A grant has one port. */
export type AllowRule = NetRule<Port>

/** A denial may cover every port. */
export type DenyRule = NetRule<Port | 'any'>

/** The list of `config.json` to which a grant belongs. */
export function listOf(rule: NetTarget): 'http' | 'tcp' {
  return rule.kind === 'name' || rule.kind === 'wildcard' ? 'http' : 'tcp'
}

/**
 * Prefix of a grant that opens a cloud's metadata service. That service gives out the machine's credentials, so the grant
 * must name it explicitly.
 */
export const METADATA_WORD = 'metadata:'

export const isMetadata = (target: NetTarget): boolean =>
  target.kind === 'address' && classifyAddress(target.address) === 'metadata'

/** The text that parses to this rule. */
export function printRule(rule: DenyRule): string {
  const text = printEndpoint(rule, rule.port)
  if (rule.request !== undefined) return printPattern(rule.request, text)
  return rule.port !== 'any' && isMetadata(rule) ? `${METADATA_WORD}${text}` : text
}

/** The rule as a word of a shell command. */
export function ruleWord(rule: DenyRule): string {
  const text = printRule(rule)
  return /^[A-Za-z0-9._:-]+$/.test(text) ? text : `'${text}'`
}

export function printEndpoint(target: NetTarget, port: Port | 'any'): string {
  const text = printTarget(target)
  return port === 'any' ? text : `${text}:${port}`
}

function printTarget(rule: NetTarget): string {
  switch (rule.kind) {
    case 'name':
      return rule.host
    case 'wildcard':
      return `*.${rule.suffix}`
    case 'address':
      return isIPv6(rule.address) ? `[${rule.address}]` : rule.address
    case 'host-service':
      return HOST_SERVICE
  }
}

/** Whether `outer` matches everything that `inner` matches. */
export function covers(outer: DenyRule, inner: DenyRule): boolean {
  if (outer.port !== 'any' && outer.port !== inner.port) return false
  const { request } = outer
  if (request !== undefined && (inner.request === undefined || !coversRequest(request, inner.request)))
    return false
  return coversTarget(outer, inner)
}

function coversTarget(outer: NetTarget, inner: NetTarget): boolean {
  switch (outer.kind) {
    case 'name':
      return inner.kind === 'name' && inner.host === outer.host
    case 'wildcard':
      if (inner.kind === 'name') return isUnder(inner.host, outer.suffix)
      return (
        inner.kind === 'wildcard' && (inner.suffix === outer.suffix || isUnder(inner.suffix, outer.suffix))
      )
    case 'address':
      return inner.kind === 'address' && inner.address === outer.address
    case 'host-service':
      return inner.kind === 'host-service'
  }
}

/**
 * What two grants both allow: the narrower one, or nothing. Names form a tree and a grant has one port, so their targets
 * never overlap partly. Untrusted layers are merged with this function, so they can narrow a grant and never create one.
 */
export function intersect(a: AllowRule, b: AllowRule): AllowRule | undefined {
  if (covers(a, b)) return b
  if (covers(b, a)) return a
  if (a.request === undefined && b.request === undefined) return undefined
  if (a.port !== b.port) return undefined
  const narrower = coversTarget(a, b) ? b : coversTarget(b, a) ? a : undefined
  if (narrower === undefined) return undefined
  const request =
    a.request === undefined || b.request === undefined
      ? (a.request ?? b.request)
      : intersectRequests(a.request, b.request)
  return request === undefined ? undefined : { ...narrower, request }
}

/**
 * Returns a function that lists the grants which may overlap with a rule. Names and addresses use a lookup, so two long lists,
 * one of them hostile, do not multiply. A wildcard is compared with all.
 */
export function overlapping(list: readonly AllowRule[]): (rule: AllowRule) => readonly AllowRule[] {
  const byEndpoint = new Map<string, AllowRule[]>()
  for (const rule of list) {
    const endpoint = printEndpoint(rule, rule.port)
    byEndpoint.set(endpoint, [...(byEndpoint.get(endpoint) ?? []), rule])
  }
  return rule => {
    if (rule.kind === 'wildcard') return list
    const found = byEndpoint.get(printEndpoint(rule, rule.port)) ?? []
    if (rule.kind !== 'name') return found
    const { host, port } = rule
    const all = [...found]
    for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1))
      all.push(...(byEndpoint.get(`*${host.slice(dot)}:${port}`) ?? []))
    return all
  }
}

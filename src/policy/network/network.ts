import type { NetworkMode } from '../settings.ts'
import type { Sourced } from '../source.ts'
import type { Address } from './address.ts'
import type { Host } from './host.ts'
import type { AllowRule, DenyRule, NetTarget } from './net-rule.ts'
import type { Port } from './port.ts'
import type { Secret } from './secret.ts'

interface NetworkInput {
  readonly mode: NetworkMode
  /** Overrides every grant. */
  readonly offline: boolean
  readonly allow: readonly Sourced<AllowRule>[]
  readonly deny: readonly Sourced<DenyRule>[]
  /**
   * Mirrors named in the user's or the system's package-manager configuration. These may resolve to a private address, because
   * the configuration names them. Never filled from a file in a project.
   */
  readonly mirrors?: readonly Host[]
  readonly secrets?: readonly Sourced<Secret>[]
}

/** All rules for one target. */
export interface TargetRules {
  readonly allow: ReadonlyMap<Port, Sourced<AllowRule>>
  readonly deny: ReadonlyMap<Port | 'any', Sourced<DenyRule>>
  /** Rules about requests, at any port. */
  readonly requests: RequestRules
}

export interface RequestRules {
  readonly allow: readonly Sourced<AllowRule>[]
  readonly deny: readonly Sourced<DenyRule>[]
}

/** The compiled rules. A name or address takes one lookup, wildcards one per dot, whatever the number of rules. */
export interface NetworkIndex {
  readonly mode: NetworkMode
  readonly offline: boolean
  readonly names: ReadonlyMap<Host, TargetRules>
  readonly suffixes: ReadonlyMap<string, TargetRules>
  readonly addresses: ReadonlyMap<Address, TargetRules>
  readonly hostService: TargetRules
  readonly mirrors: ReadonlySet<Host>
  readonly secrets: readonly Sourced<Secret>[]
}

/** When two layers have the same rule, the earlier one is reported as the source. */
export function compileNetwork(input: NetworkInput): NetworkIndex {
  const names = new Map<Host, Gathered>()
  const suffixes = new Map<string, Gathered>()
  const addresses = new Map<Address, Gathered>()
  const hostService = new Gathered()

  const rulesFor = (target: NetTarget): Gathered => {
    switch (target.kind) {
      case 'name':
        return entry(names, target.host)
      case 'wildcard':
        return entry(suffixes, target.suffix)
      case 'address':
        return entry(addresses, target.address)
      case 'host-service':
        return hostService
    }
  }
  for (const sourced of input.allow) {
    const { allow, requests } = rulesFor(sourced.rule)
    if (sourced.rule.request !== undefined) requests.allow.push(sourced)
    else if (!allow.has(sourced.rule.port)) allow.set(sourced.rule.port, sourced)
  }
  for (const sourced of input.deny) {
    const { deny, requests } = rulesFor(sourced.rule)
    if (sourced.rule.request !== undefined) requests.deny.push(sourced)
    else if (!deny.has(sourced.rule.port)) deny.set(sourced.rule.port, sourced)
  }
  const { mode, offline, secrets = [] } = input
  const mirrors = new Set(input.mirrors ?? [])
  return { mode, offline, names, suffixes, addresses, hostService, mirrors, secrets }
}

class Gathered implements TargetRules {
  readonly allow = new Map<Port, Sourced<AllowRule>>()
  readonly deny = new Map<Port | 'any', Sourced<DenyRule>>()
  readonly requests = { allow: [] as Sourced<AllowRule>[], deny: [] as Sourced<DenyRule>[] }
}

function entry<K>(map: Map<K, Gathered>, key: K): Gathered {
  const known = map.get(key) ?? new Gathered()
  map.set(key, known)
  return known
}

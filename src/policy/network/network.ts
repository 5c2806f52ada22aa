import type { Sourced } from '../source.ts'
import type { Address } from './address.ts'
import type { Host } from './host.ts'
import type { AllowRule, DenyRule, NetTarget } from './net-rule.ts'
import type { Port } from './port.ts'

/** How a sandbox is connected. `bridge` is the engine's open network, where pen enforces no rule. */
export type NetworkMode = 'gateway' | 'none' | 'bridge'

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
}

/** All rules for one target. */
export interface TargetRules {
  readonly allow: ReadonlyMap<Port, Sourced<AllowRule>>
  readonly deny: ReadonlyMap<Port | 'any', Sourced<DenyRule>>
}

/** The mutable form of `TargetRules`. Most targets have only one kind of rule. */
interface Gathered {
  allow: Map<Port, Sourced<AllowRule>>
  deny: Map<Port | 'any', Sourced<DenyRule>>
}

const NO_ALLOW: Gathered['allow'] = new Map()
const NO_DENY: Gathered['deny'] = new Map()

/** The compiled rules. A name or address takes one lookup, wildcards one per dot, whatever the number of rules. */
export interface NetworkIndex {
  readonly mode: NetworkMode
  readonly offline: boolean
  readonly names: ReadonlyMap<Host, TargetRules>
  readonly suffixes: ReadonlyMap<string, TargetRules>
  readonly addresses: ReadonlyMap<Address, TargetRules>
  readonly hostService: TargetRules
  readonly mirrors: ReadonlySet<Host>
}

/** When two layers have the same rule, the earlier one is reported as the source. */
export function compileNetwork(input: NetworkInput): NetworkIndex {
  const names = new Map<Host, Gathered>()
  const suffixes = new Map<string, Gathered>()
  const addresses = new Map<Address, Gathered>()
  const hostService = noRules()

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
    const rules = rulesFor(sourced.rule)
    if (rules.allow === NO_ALLOW) rules.allow = new Map()
    if (!rules.allow.has(sourced.rule.port)) rules.allow.set(sourced.rule.port, sourced)
  }
  for (const sourced of input.deny) {
    const rules = rulesFor(sourced.rule)
    if (rules.deny === NO_DENY) rules.deny = new Map()
    if (!rules.deny.has(sourced.rule.port)) rules.deny.set(sourced.rule.port, sourced)
  }
  const { mode, offline } = input
  return { mode, offline, names, suffixes, addresses, hostService, mirrors: new Set(input.mirrors ?? []) }
}

function entry<K>(map: Map<K, Gathered>, key: K): Gathered {
  const known = map.get(key)
  if (known !== undefined) return known
  const fresh = noRules()
  map.set(key, fresh)
  return fresh
}

const noRules = (): Gathered => ({ allow: NO_ALLOW, deny: NO_DENY })

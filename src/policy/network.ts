import { nearest } from '../base/nearest.ts'
import type { Address } from './address.ts'
import type { Host } from './host.ts'
import type { AllowRule, DenyRule, NetTarget } from './net-rule.ts'
import type { Port } from './port.ts'
import type { Sourced } from './source.ts'

/** How a sandbox is connected; `bridge` is the engine's own open network, which no rule of pen's can hold. */
export type NetworkMode = 'gateway' | 'none' | 'bridge'

export interface NetworkInput {
  readonly mode: NetworkMode
  /** Overrules every grant, whoever made it. */
  readonly offline: boolean
  readonly allow: readonly Sourced<AllowRule>[]
  readonly deny: readonly Sourced<DenyRule>[]
  /**
   * Mirrors that the user's or the system's package-manager configuration names. Naming a mirror there counts as
   * naming its address, so these may resolve to a private one. Never filled from a file in a project.
   */
  readonly mirrors?: readonly Host[]
}

/** All that the rules say about one target. */
export interface TargetRules {
  readonly allow: Map<Port, Sourced<AllowRule>>
  readonly deny: Map<Port | 'any', Sourced<DenyRule>>
}

/** The compiled rules: one look-up for a name or address, one per dot for wildcards, however many rules there are. */
export interface NetworkIndex {
  readonly mode: NetworkMode
  readonly offline: boolean
  readonly names: ReadonlyMap<Host, TargetRules>
  readonly suffixes: ReadonlyMap<string, TargetRules>
  readonly addresses: ReadonlyMap<Address, TargetRules>
  readonly hostService: TargetRules
  readonly mirrors: ReadonlySet<Host>
}

/** Where two layers say the same, the one that came first is named as the reason. */
export function compileNetwork(input: NetworkInput): NetworkIndex {
  const names = new Map<Host, TargetRules>()
  const suffixes = new Map<string, TargetRules>()
  const addresses = new Map<Address, TargetRules>()
  const hostService = noRules()

  const rulesFor = (target: NetTarget): TargetRules => {
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
    const { allow } = rulesFor(sourced.rule)
    if (!allow.has(sourced.rule.port)) allow.set(sourced.rule.port, sourced)
  }
  for (const sourced of input.deny) {
    const { deny } = rulesFor(sourced.rule)
    if (!deny.has(sourced.rule.port)) deny.set(sourced.rule.port, sourced)
  }
  const { mode, offline } = input
  return { mode, offline, names, suffixes, addresses, hostService, mirrors: new Set(input.mirrors ?? []) }
}

/** "Did you mean" for a name that no rule allows. It compares with every rule: for people, not for the gateway. */
export function nearestAllowed(index: NetworkIndex, host: Host): string | undefined {
  const allowed = [...index.names].flatMap(([name, rules]) =>
    rules.allow.size > 0 && name !== host ? [name] : [],
  )
  return nearest(host, allowed)
}

function entry<K>(map: Map<K, TargetRules>, key: K): TargetRules {
  const known = map.get(key)
  if (known !== undefined) return known
  const fresh = noRules()
  map.set(key, fresh)
  return fresh
}

const noRules = (): TargetRules => ({ allow: new Map(), deny: new Map() })

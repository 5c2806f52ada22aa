import type { Sourced } from '../source.ts'
import type { Address } from './address.ts'
import type { Host } from './host.ts'
import type { AllowRule, DenyRule, NetTarget } from './net-rule.ts'
import type { Port } from './port.ts'

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
  readonly allow: ReadonlyMap<Port, Sourced<AllowRule>>
  readonly deny: ReadonlyMap<Port | 'any', Sourced<DenyRule>>
}

/** The same while it is filled; most targets have rules of one kind only. */
interface Gathered {
  allow: Map<Port, Sourced<AllowRule>>
  deny: Map<Port | 'any', Sourced<DenyRule>>
}

const NO_ALLOW: Gathered['allow'] = new Map()
const NO_DENY: Gathered['deny'] = new Map()

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

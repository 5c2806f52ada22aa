/** What all connections of one sandbox share. */
import type { AuditEventInput, AuditSink } from '../audit/event.ts'
import type { Address } from '../policy/network/address.ts'
import type { Host } from '../policy/network/host.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import type { Sourced } from '../policy/source.ts'
import type { Dialer } from './dial/dial.ts'
import { Holds } from './holds.ts'
import type { GatewayLimits } from './limits.ts'
import { BufferBudget } from './stream/buffer-budget.ts'
import { TokenBucket } from './stream/token-bucket.ts'

/** Which name an address was handed out for: the part of the name pool that the gateway needs. */
export interface NameSource {
  nameOf(address: Address): Host | undefined
}

export interface GatewayStats {
  /** Connections of the sandbox that are open now. */
  open: number
  undecided: number
  accepted: number
  allowed: number
  denied: number
  failed: number
  /** Closed unheard because a bound was reached. */
  limited: number
  bytesUp: number
  bytesDown: number
}

export class GatewayContext {
  readonly stats: GatewayStats = {
    open: 0,
    undecided: 0,
    accepted: 0,
    allowed: 0,
    denied: 0,
    failed: 0,
    limited: 0,
    bytesUp: 0,
    bytesDown: 0,
  }
  readonly network: () => NetworkPolicy
  readonly names: NameSource
  readonly limits: GatewayLimits
  readonly dialer: Dialer
  readonly held: BufferBudget
  readonly holds: Holds
  /** Grants for one connection that were taken, here or by another sandbox. */
  readonly spent = new Set<string>()
  readonly #audit: AuditSink
  readonly #useUp: (grant: string) => boolean
  readonly #denials: TokenBucket
  readonly #unheard = new Map<string, number>()
  #lastNumber = 0

  constructor(
    network: () => NetworkPolicy,
    names: NameSource,
    limits: GatewayLimits,
    dialer: Dialer,
    audit: AuditSink,
    useUp: (grant: string) => boolean,
  ) {
    this.network = network
    this.names = names
    this.limits = limits
    this.dialer = dialer
    this.held = new BufferBudget(limits.maxHeld)
    this.holds = new Holds(limits)
    this.#audit = audit
    this.#useUp = useUp
    this.#denials = new TokenBucket(limits.denialBurst, limits.denialsPerSecond)
  }

  /** True for exactly one connection of all sandboxes. */
  claim({ source }: Sourced<unknown>): boolean {
    const grant = source.temporary?.once
    if (grant === undefined || this.spent.has(grant)) return false
    this.spent.add(grant)
    return this.#useUp(grant)
  }

  nextNumber(): number {
    return ++this.#lastNumber
  }

  /** False when it could not be written down: then it must not be done. */
  record(event: AuditEventInput): boolean {
    try {
      this.#audit.record(event)
      return true
    } catch {
      return false
    }
  }

  /** False when denials come faster than they may fill the audit: the connection is closed and only counted. */
  mayDeny(): boolean {
    if (this.#denials.take()) return true
    this.countUnheard('denials-per-second')
    return false
  }

  countUnheard(limit: string): void {
    this.stats.limited++
    this.#unheard.set(limit, (this.#unheard.get(limit) ?? 0) + 1)
  }

  /** One record for all connections that a bound has turned away since the last one. */
  recordUnheard(): void {
    for (const [limit, count] of this.#unheard)
      if (
        this.record({ kind: 'limit-hit', limit, value: String(count), reason: 'connections closed unheard' })
      )
        this.#unheard.delete(limit)
  }
}

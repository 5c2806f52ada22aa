/** State that all connections of one sandbox share. */
import type { AuditEventInput, AuditSink } from '../audit/event.ts'
import { TokenBucket } from '../base/token-bucket.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import type { Sourced } from '../policy/source.ts'
import type { Dialer } from './dial/dial.ts'
import type { NameTable } from './dns/names.ts'
import { Holds } from './holds.ts'
import type { GatewayLimits } from './limits.ts'
import { BufferBudget } from './stream/buffer-budget.ts'

const UNRECORDED = 'connections rejected without a record'

const newStats = () => ({
  /** Connections of the sandbox that are open now. */
  open: 0,
  undecided: 0,
  accepted: 0,
  allowed: 0,
  denied: 0,
  failed: 0,
  /** Closed without being served, because a limit was reached. */
  limited: 0,
  bytesUp: 0,
  bytesDown: 0,
})

export type GatewayStats = ReturnType<typeof newStats>

export class GatewayContext {
  readonly stats = newStats()
  readonly network: () => NetworkPolicy
  readonly names: Pick<NameTable, 'nameOf'>
  readonly limits: GatewayLimits
  readonly dialer: Dialer
  readonly buffers: BufferBudget
  readonly holds: Holds
  /** Consumed grants for one connection, by this or another sandbox. */
  readonly spent = new Set<string>()
  readonly #audit: AuditSink
  readonly #useUp: (grant: string) => boolean
  readonly #denials: TokenBucket
  readonly #rejected = new Map<string, number>()
  #lastNumber = 0

  constructor(
    network: () => NetworkPolicy,
    names: Pick<NameTable, 'nameOf'>,
    limits: GatewayLimits,
    dialer: Dialer,
    audit: AuditSink,
    useUp: (grant: string) => boolean,
  ) {
    this.network = network
    this.names = names
    this.limits = limits
    this.dialer = dialer
    this.buffers = new BufferBudget(limits.maxBuffered)
    this.holds = new Holds(limits)
    this.#audit = audit
    this.#useUp = useUp
    this.#denials = new TokenBucket(limits.denialBurst, limits.denialsPerSecond)
  }

  /** Consumes a grant. True for exactly one connection of all sandboxes. */
  claim({ source }: Sourced<unknown>): boolean {
    const grant = source.temporary?.once
    if (grant === undefined || this.spent.has(grant)) return false
    this.spent.add(grant)
    return this.#useUp(grant)
  }

  nextNumber(): number {
    return ++this.#lastNumber
  }

  /** False when the record could not be written. Then the caller must not act. */
  record(event: AuditEventInput): boolean {
    try {
      this.#audit.record(event)
      return true
    } catch {
      return false
    }
  }

  /** False when denials exceed their rate. Then the connection is closed and only counted. */
  mayDeny(): boolean {
    if (this.#denials.take()) return true
    this.countRejected('denials-per-second')
    return false
  }

  countRejected(limit: string): void {
    this.stats.limited++
    this.#rejected.set(limit, (this.#rejected.get(limit) ?? 0) + 1)
  }

  /** Writes one record per limit for the connections rejected since the last call. */
  recordRejected(): void {
    for (const [limit, count] of this.#rejected)
      if (this.record({ kind: 'limit-hit', limit, value: String(count), reason: UNRECORDED }))
        this.#rejected.delete(limit)
  }
}

/** State that all connections of one sandbox share. */
import type { AuditEventInput, AuditSink } from '../audit/event.ts'
import { TokenBucket } from '../base/token-bucket.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import type { Sourced } from '../policy/source.ts'
import { type Connect, Dialer } from './dial/dial.ts'
import { HostResolver, type Resolver } from './dial/resolve.ts'
import { connectTcp } from './dial/tcp-connect.ts'
import type { NameTable } from './dns/names.ts'
import { Holds } from './holds.ts'
import { DEFAULT_LIMITS, type GatewayLimits } from './limits.ts'
import type { Vault } from './secrets/vault.ts'
import { BufferBudget } from './stream/buffer-budget.ts'
import type { Authority } from './tls/authority.ts'
import { hostTrust } from './tls/host-trust.ts'

export interface GatewayOptions {
  /** The current policy. The gateway reads it at every decision, so a change takes effect at once and as a whole. */
  readonly network: () => NetworkPolicy
  readonly names: Pick<NameTable, 'nameOf'>
  readonly audit: AuditSink
  readonly limits?: Partial<GatewayLimits>
  readonly resolver?: Resolver
  /** Consumes a grant for one connection. True for exactly one caller. */
  readonly useUp?: (grant: string) => boolean
  /** Makes certificates for opened hosts. Undefined when the sandbox does not trust it. */
  readonly authority?: Authority | undefined
  readonly vault?: Vault | undefined
  /** The certificate authorities that servers are checked against. Undefined: those of the host. */
  readonly trust?: string
  /** Dials a checked address. Tests pass a function that dials a server of their own. */
  readonly connect?: Connect
}

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
  readonly resolver: Resolver
  readonly dialer: Dialer
  readonly buffers: BufferBudget
  readonly holds: Holds
  readonly authority: Authority | undefined
  readonly vault: Vault | undefined
  /** Consumed grants for one connection, by this or another sandbox. */
  readonly spent = new Set<string>()
  readonly #options: GatewayOptions
  readonly #denials: TokenBucket
  readonly #rejected = new Map<string, number>()
  #lastNumber = 0

  constructor(options: GatewayOptions) {
    const { network, names, connect = connectTcp } = options
    const limits = { ...DEFAULT_LIMITS, ...options.limits }
    const resolver = options.resolver ?? new HostResolver({ timeoutMs: limits.lookupMs })
    this.network = network
    this.names = names
    this.limits = limits
    this.resolver = resolver
    this.buffers = new BufferBudget(limits.maxBuffered)
    this.dialer = new Dialer({ network, resolver, limits, connect, buffers: this.buffers })
    this.holds = new Holds(limits)
    this.authority = options.authority
    this.vault = options.vault
    this.#options = options
    this.#denials = new TokenBucket(limits.denialBurst, limits.denialsPerSecond)
  }

  get trust(): string | undefined {
    return this.#options.trust ?? hostTrust()
  }

  /** Consumes a grant. True for exactly one connection of all sandboxes. */
  claim({ source }: Sourced<unknown>): boolean {
    const grant = source.temporary?.once
    if (grant === undefined || this.spent.has(grant)) return false
    this.spent.add(grant)
    return this.#options.useUp?.(grant) ?? false
  }

  nextNumber(): number {
    return ++this.#lastNumber
  }

  /** False when the record could not be written. Then the caller must not act. */
  record(event: AuditEventInput): boolean {
    try {
      this.#options.audit.record(event)
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

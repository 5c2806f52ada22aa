/** The only way out of a sandbox. The gateway judges and records every connection before it dials. */
import type { AuditSink } from '../audit/event.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import { type AskOptions, askUser, type UserAnswer } from './ask-user.ts'
import { serveConnection } from './connection.ts'
import { type Connect, Dialer } from './dial/dial.ts'
import { HostResolver, type Resolver } from './dial/resolve.ts'
import { connectTcp } from './dial/tcp-connect.ts'
import type { NameTable } from './dns/names.ts'
import { GatewayContext, type GatewayStats } from './gateway-context.ts'
import { DEFAULT_LIMITS, type GatewayLimits } from './limits.ts'
import type { Endpoint } from './route.ts'
import { type Accepted, Session } from './session.ts'

export interface GatewayOptions {
  /** The current policy. The gateway reads it at every decision, so a change takes effect at once and as a whole. */
  readonly network: () => NetworkPolicy
  readonly names: Pick<NameTable, 'nameOf'>
  readonly audit: AuditSink
  readonly limits?: Partial<GatewayLimits>
  readonly resolver?: Resolver
  /** Consumes a grant for one connection. True for exactly one caller. */
  readonly useUp?: (grant: string) => boolean
  /** Dials a checked address. Tests pass a function that dials a server of their own. */
  readonly connect?: Connect
}

const SWEEP_MS = 1000
const POLL_MS = 2

const nextTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

export class Gateway {
  readonly #shared: GatewayContext
  readonly #resolver: Resolver
  readonly #sessions = new Set<Session>()
  readonly #sweeper: ReturnType<typeof setInterval>
  #isClosed: boolean = false
  #onEmpty: (() => void) | undefined

  constructor(options: GatewayOptions) {
    const { network, names, audit, connect = connectTcp, useUp = () => false } = options
    const limits = { ...DEFAULT_LIMITS, ...options.limits }
    this.#resolver = options.resolver ?? new HostResolver({ timeoutMs: limits.lookupMs })
    const dialer = new Dialer({ network, resolver: this.#resolver, limits, connect })
    this.#shared = new GatewayContext(network, names, limits, dialer, audit, useUp)
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(SWEEP_MS, limits.halfClosedMs))
    this.#sweeper.unref()
  }

  accept(accepted: Accepted): void {
    const { stats, limits } = this.#shared
    stats.accepted++
    const limit = this.#isClosed ? 'closed' : this.#limitReached(stats, limits)
    if (limit !== undefined) {
      this.#shared.countRejected(limit)
      accepted.socket.reset()
      return
    }
    const session = new Session(this.#shared, accepted, () => this.#forget(session))
    this.#sessions.add(session)
    serveConnection(session, accepted).catch(() => session.end('error'))
  }

  /** The door closed a connection that was never served. It is counted and recorded with the others. */
  rejected(why: string): void {
    this.#shared.countRejected(why)
  }

  /** Answers a program that asks before it dials. */
  ask(endpoint: Endpoint, options: AskOptions): Promise<UserAnswer> {
    const isGone = (): boolean => this.#isClosed || options.isGone()
    return askUser(this.#shared, endpoint, { ...options, isGone })
  }

  /** Ends connections that the new policy does not allow, and returns their number. Held connections are judged again. */
  policyChanged(): number {
    this.#resolver.forget?.()
    const policy = this.#shared.network()
    let ended = 0
    for (const session of this.#sessions) {
      if (session.route === undefined || session.route.isAllowedBy(policy)) continue
      session.end('policy')
      ended++
    }
    this.#shared.holds.wake()
    return ended
  }

  stats(): GatewayStats & { readonly dialling: number; readonly holding: number } {
    const { stats, dialer, holds } = this.#shared
    return { ...stats, dialling: dialer.inFlight, holding: holds.count }
  }

  /**
   * The sandbox and every program in it have ended. Waits up to `ms` until the bytes that they sent last are sent
   * upstream, as they would be without pen. Replies of servers are not waited for.
   */
  async finish(ms: number): Promise<void> {
    // The kernel may have accepted connections that the event loop has not handled yet.
    await nextTurn()
    await nextTurn()
    const end = performance.now() + ms
    while (performance.now() < end && [...this.#sessions].some(session => !session.isFlushed))
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
    for (const session of this.#sessions) if (session.isFlushed) session.end('client')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    for (const session of this.#sessions) session.end('policy')
    this.#shared.recordRejected()
    if (this.#sessions.size > 0) await promise
    // Held connections write their last record in the next turn.
    await nextTurn()
  }

  #forget(session: Session): void {
    this.#sessions.delete(session)
    if (this.#sessions.size === 0) this.#onEmpty?.()
  }

  #limitReached(stats: GatewayStats, limits: GatewayLimits): string | undefined {
    if (stats.open >= limits.maxConnections) return 'connections'
    return stats.undecided >= limits.maxUndecided ? 'undecided-connections' : undefined
  }

  #sweep(): void {
    const { limits, network } = this.#shared
    const { idle } = network()
    const now = performance.now()
    for (const session of this.#sessions) {
      const longest = session.isHalfClosed ? Math.min(idle, limits.halfClosedMs) : idle
      if (now - session.lastActive > longest) session.end('idle')
    }
    this.#shared.buffers.count()
    this.#shared.recordRejected()
  }
}

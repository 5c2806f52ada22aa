/** The one way out of a sandbox. Every connection it accepts is judged, written down, and only then dialled. */
import type { AuditSink } from '../audit/event.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import { type AskOptions, askUser, type UserAnswer } from './ask-user.ts'
import { serveConnection } from './connection.ts'
import { type Connect, Dialer } from './dial/dial.ts'
import { HostResolver, type Resolver } from './dial/resolve.ts'
import { connectTcp } from './dial/tcp-connect.ts'
import { GatewayContext, type GatewayStats, type NameSource } from './gateway-context.ts'
import { DEFAULT_LIMITS, type GatewayLimits } from './limits.ts'
import type { Endpoint } from './route.ts'
import { Session } from './session.ts'
import type { Accepted } from './stream/accepted.ts'

export type { Resolver } from './dial/resolve.ts'
export type { GatewayStats, NameSource } from './gateway-context.ts'
export type { GatewayLimits } from './limits.ts'
export type { Accepted } from './stream/accepted.ts'

export interface GatewayOptions {
  /** The policy in force. It is asked for again at every decision, so that an edit holds at once and as a whole. */
  readonly network: () => NetworkPolicy
  readonly names: NameSource
  readonly audit: AuditSink
  readonly limits?: Partial<GatewayLimits>
  readonly resolver?: Resolver
  /** Uses up a grant for one connection; true for one caller alone. */
  readonly useUp?: (grant: string) => boolean
  /** How a checked address is dialled; tests lead it to a server of their own. */
  readonly connect?: Connect
}

const SWEEP_MS = 1000
const LOOK_MS = 2

const nextTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

export class Gateway {
  readonly #shared: GatewayContext
  readonly #resolver: Resolver
  readonly #sessions = new Set<Session>()
  readonly #sweeper: ReturnType<typeof setInterval>
  #isClosed: boolean = false
  #onEmpty: (() => void) | undefined

  constructor({ network, names, audit, limits: wanted, resolver, connect, useUp }: GatewayOptions) {
    const limits = { ...DEFAULT_LIMITS, ...wanted }
    this.#resolver = resolver ?? new HostResolver({ timeoutMs: limits.lookupMs })
    const dialer = new Dialer({
      network,
      resolver: this.#resolver,
      limits,
      connect: connect ?? connectTcp,
    })
    this.#shared = new GatewayContext(network, names, limits, dialer, audit, useUp ?? (() => false))
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(SWEEP_MS, limits.halfClosedMs))
    this.#sweeper.unref()
  }

  accept(accepted: Accepted): void {
    const { stats, limits } = this.#shared
    stats.accepted++
    const bound = this.#isClosed ? 'closed' : this.#boundReached(stats, limits)
    if (bound !== undefined) {
      this.#shared.countUnheard(bound)
      accepted.socket.reset()
      return
    }
    const session = new Session(this.#shared, accepted, () => this.#forget(session))
    this.#sessions.add(session)
    serveConnection(session, accepted).catch(() => session.end('error'))
  }

  /** The door closed a connection before anybody heard it: it is counted here, and told with the others. */
  rejected(why: string): void {
    this.#shared.countUnheard(why)
  }

  /** For a program that asks before anything is dialled. */
  ask(endpoint: Endpoint, options: AskOptions): Promise<UserAnswer> {
    const isGone = (): boolean => this.#isClosed || options.isGone()
    return askUser(this.#shared, endpoint, { ...options, isGone })
  }

  /** Ends what the policy in force no longer allows, and tells how many that were. What is held hears its answer. */
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
   * The sandbox has ended, and with it every program in it. What they sent last still goes where it was allowed to go,
   * as it would without pen; the servers' answers nobody waits for. Not longer than this.
   */
  async finish(ms: number): Promise<void> {
    // Connections that the kernel took and nobody has looked at yet.
    await nextTurn()
    await nextTurn()
    const end = performance.now() + ms
    while (performance.now() < end && [...this.#sessions].some(session => !session.isSaid))
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
    for (const session of this.#sessions) if (session.isSaid) session.end('client')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    for (const session of this.#sessions) session.end('policy')
    this.#shared.recordUnheard()
    if (this.#sessions.size > 0) await promise
    // What was held has its last record.
    await nextTurn()
  }

  #forget(session: Session): void {
    this.#sessions.delete(session)
    if (this.#sessions.size === 0) this.#onEmpty?.()
  }

  #boundReached(stats: GatewayStats, limits: GatewayLimits): string | undefined {
    if (stats.open >= limits.maxConnections) return 'connections'
    return stats.undecided >= limits.maxUndecided ? 'undecided-connections' : undefined
  }

  #sweep(): void {
    const { limits, network } = this.#shared
    const { idle } = network()
    const now = performance.now()
    for (const session of this.#sessions) {
      const bound = session.isHalfClosed ? Math.min(idle, limits.halfClosedMs) : idle
      if (now - session.lastActive > bound) session.end('idle')
    }
    this.#shared.held.count()
    this.#shared.recordUnheard()
  }
}

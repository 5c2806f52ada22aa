/** The only way out of a sandbox. The gateway judges and records every connection before it dials. */
import { type AskOptions, askUser, type UserAnswer } from './ask-user.ts'
import { serveConnection } from './connection.ts'
import { GatewayContext, type GatewayOptions, type GatewayStats } from './gateway-context.ts'
import type { GatewayLimits } from './limits.ts'
import type { Endpoint } from './route.ts'
import { type Accepted, Session } from './session.ts'

const SWEEP_MS = 1000
const POLL_MS = 2

const nextTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

export class Gateway {
  readonly #shared: GatewayContext
  readonly #sessions = new Set<Session>()
  readonly #sweeper: ReturnType<typeof setInterval>
  #isClosed: boolean = false
  #onEmpty: (() => void) | undefined

  constructor(options: GatewayOptions) {
    this.#shared = new GatewayContext(options)
    const everyMs = Math.min(SWEEP_MS, this.#shared.limits.halfClosedMs)
    this.#sweeper = setInterval(() => this.#sweep(), everyMs)
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
    this.#shared.resolver.forget?.()
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

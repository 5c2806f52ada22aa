/**
 * Serves granted files to a sandbox. Every request is hostile. `decideGrant` judges it, the broker opens the path without
 * following links, records the verdict, and only then acts.
 */
import type { AuditSink } from '../audit/event.ts'
import { errnoOf } from '../base/error.ts'
import { TokenBucket } from '../base/token-bucket.ts'
import { decideGrant, type FileGrant, type GrantedPolicy } from '../policy/files/decide-grant.ts'
import type { FileRequest, GrantedPlace, PathRequest } from '../protocol/broker-messages.ts'
import { Exchange, type Peer } from './exchange.ts'
import { GrantedRoots } from './granted-roots.ts'
import { type BrokerLimits, DEFAULT_LIMITS } from './limits.ts'
import type { Access, Operation } from './operation.ts'
import { prepareRead } from './read-file.ts'
import { Refusal, refusalOf } from './refusal.ts'
import { requestedPath } from './requested-path.ts'
import { prepareList, prepareStat } from './stat-and-list.ts'
import { prepareWrite } from './write-file.ts'

export interface BrokerOptions {
  readonly policy: GrantedPolicy
  /** The current grants. Returns the same array until they change. */
  readonly grants: () => readonly FileGrant[]
  readonly audit: AuditSink
  /** Bytes that all requests of the run together may write. */
  readonly maxWritten: number
  readonly limits?: Partial<BrokerLimits>
  /** Reports a bug in pen. The supervisor then stops. */
  readonly fail: (error: unknown) => void
}

interface ActiveRequest {
  readonly exchange: Exchange
  /** Throws when the path is no longer granted. */
  readonly check: () => void
}

/** Operations that get a record when they end. */
const TRANSFERS: ReadonlySet<PathRequest['op']> = new Set<PathRequest['op']>(['read', 'write'])

export class Broker {
  readonly limits: BrokerLimits
  readonly pace: TokenBucket
  readonly #options: BrokerOptions
  readonly #roots: GrantedRoots
  readonly #active = new Set<ActiveRequest>()
  readonly #serving = new Set<Promise<void>>()
  #known: readonly FileGrant[] = []
  #requests = 0
  #written = 0
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: BrokerOptions) {
    this.#options = options
    this.limits = { ...DEFAULT_LIMITS, ...options.limits }
    this.pace = new TokenBucket(this.limits.requestBurst, this.limits.requestsPerSecond)
    this.#roots = new GrantedRoots(options.policy.sandbox)
    this.#known = options.grants()
  }

  /** Starts a request. It replies through `peer` and calls `over` asynchronously at its end. */
  begin(request: FileRequest, peer: Peer, over: () => void): Exchange {
    const exchange = new Exchange(peer)
    const serving = this.#serve(request, exchange)
      .catch(this.#options.fail)
      .finally(() => {
        this.#serving.delete(serving)
        over()
      })
    this.#serving.add(serving)
    return exchange
  }

  /** Ends every request with a reason, and waits for their ends. */
  async close(): Promise<void> {
    for (const { exchange } of this.#active) exchange.end(new Refusal('ended'))
    await Promise.all(this.#serving)
    clearInterval(this.#timer)
    this.#roots.keepOnly([])
  }

  async #serve(request: FileRequest, exchange: Exchange): Promise<void> {
    try {
      if (request.op === 'grants') exchange.send({ kind: 'granted', places: this.#places() })
      else await this.#perform(request, exchange)
      exchange.send({ kind: 'done', bytes: exchange.bytes })
    } catch (error) {
      const isBug = !(error instanceof Refusal) && errnoOf(error) === undefined
      const { reason, message, fix } = isBug ? new Refusal('failed') : refusalOf(error)
      exchange.send({ kind: 'refused', refusal: { reason, why: message, fix: fix ?? null } })
      if (isBug) throw error
    }
  }

  /** Looks the path up, records the verdict, then acts. */
  async #perform(request: PathRequest, exchange: Exchange): Promise<void> {
    const began = performance.now()
    const about = { request: ++this.#requests, op: request.op, path: request.path }
    const ended = (reason: string): void => {
      const ms = Math.round(performance.now() - began)
      try {
        this.#record({ kind: 'broker-ended', ...about, bytes: exchange.bytes, ms, reason })
      } catch {
        // The start is recorded. A missing end record has no effect.
      }
    }
    let access: Access | undefined
    let found: Operation | Refusal
    try {
      access = this.#access(request)
      if (this.#active.size >= this.limits.maxRequests) throw new Refusal('busy')
      found = prepare(request, access)
    } catch (error) {
      found = refusalOf(error)
    }
    if (found instanceof Refusal && found.isDenial) {
      const { reason, message: why, fix, rule, from } = found
      this.#record({ kind: 'broker-denied', ...about, reason, why, fix, rule, from })
      throw found
    }
    const entry: ActiveRequest = { exchange, check: () => access?.check() }
    try {
      this.#record({ kind: 'broker-allowed', ...about, rule: access?.grant.path ?? '' })
      if (found instanceof Refusal) throw found
      this.#active.add(entry)
      this.#tick()
      await found.run(exchange)
      if (TRANSFERS.has(request.op)) ended('done')
    } catch (error) {
      const refusal = refusalOf(error)
      ended(refusal.reason)
      throw refusal
    } finally {
      this.#active.delete(entry)
      if (!(found instanceof Refusal)) found.close()
    }
  }

  #record(event: Parameters<AuditSink['record']>[0]): void {
    try {
      this.#options.audit.record(event)
    } catch {
      // The audit counts the records that it could not write. Until it can write, nothing is served.
      throw new Refusal('unrecorded')
    }
  }

  /** Reads the grants at every decision, so that a revoked grant ends at once. */
  #grants(): readonly FileGrant[] {
    const now = this.#options.grants()
    if (now !== this.#known) {
      const before = new Set(this.#known.map(showGrant))
      const after = new Set(now.map(showGrant))
      this.#record({
        kind: 'grants-changed',
        added: [...after].filter(text => !before.has(text)),
        removed: [...before].filter(text => !after.has(text)),
      })
      this.#known = now
      this.#roots.keepOnly(now)
    }
    return now
  }

  #places(): GrantedPlace[] {
    const now = Date.now()
    return this.#grants()
      .filter(({ until }) => until === undefined || now < until)
      .map(({ path, kind, write, until }) => ({ path, kind, write, until: until ?? null }))
  }

  #access(request: PathRequest): Access {
    const { policy } = this.#options
    const path = requestedPath(request.path)
    const access = request.op === 'write' ? 'write' : 'read'
    const judge = (at: string) => decideGrant(policy, this.#grants(), { path: at, access, now: Date.now() })
    const verdict = judge(path)
    if (!verdict.ok) throw new Refusal(verdict.reason, verdict)
    const { grant } = verdict
    return {
      grant,
      path,
      limits: this.limits,
      open: at => this.#roots.open(grant, at),
      mayList: at => judge(at).ok,
      check: () => {
        const now = judge(path)
        if (now.ok) return
        throw new Refusal(now.reason === 'expired' ? 'expired' : 'revoked', { fix: now.fix })
      },
      turn: async () => {
        await this.pace.wait()
        // Also yields to the event loop, so that other requests run in between.
        await new Promise(resolve => setImmediate(resolve))
      },
      spend: bytes => {
        this.#written += bytes
        if (this.#written > this.#options.maxWritten) throw new Refusal('too-large')
      },
    }
  }

  /** Checks active requests periodically, so that a waiting transfer does not outlive its grant. */
  #tick(): void {
    this.#timer ??= setInterval(() => {
      for (const { exchange, check } of this.#active)
        try {
          check()
          if (performance.now() - exchange.movedAt > this.limits.stallMs) throw new Refusal('stalled')
        } catch (error) {
          exchange.end(refusalOf(error))
        }
      if (this.#active.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    }, this.limits.tickMs)
    this.#timer.unref()
  }
}

function prepare(request: PathRequest, access: Access): Operation {
  switch (request.op) {
    case 'stat':
      return prepareStat(access)
    case 'list':
      return prepareList(access, request.from)
    case 'read':
      return prepareRead(access, request.from, request.length)
    case 'write':
      return prepareWrite(access, request.executable)
  }
}

const showGrant = ({ path, write, execute, until }: FileGrant): string =>
  `${path} ${write ? 'rw' : 'ro'}${execute ? ' exec' : ''}${until === undefined ? '' : ` until ${new Date(until).toISOString()}`}`

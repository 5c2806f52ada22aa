/** One allowed upstream connection: recorded, dialled, used, and recorded again when it ends. */
import type { Address } from '../policy/network/address.ts'
import {
  type Allowed,
  type ConnectionVerdict,
  type Destination,
  decideConnection,
} from '../policy/network/decide-connection.ts'
import { decideRequest, denyOtherProtocol } from '../policy/network/decide-request.ts'
import type { Denied } from '../policy/network/denial.ts'
import { type AllowRule, printRule } from '../policy/network/net-rule.ts'
import type { NetworkIndex } from '../policy/network/network.ts'
import { withGrant } from '../policy/network/once-rules.ts'
import type { Port } from '../policy/network/port.ts'
import type { RequestLine } from '../policy/network/request-pattern.ts'
import { mustOpen } from '../policy/network/secret.ts'
import { openedBy } from '../policy/network/unopened.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import { type Sourced, showSource } from '../policy/source.ts'
import { Cancellation, type DialFailure, failed } from './dial/dial-result.ts'
import type { GatewayContext } from './gateway-context.ts'
import { sameDestination } from './http/target.ts'
import { type Refusal, refusalOf } from './refusal.ts'
import type { ByteStream } from './stream/byte-stream.ts'
import type { TlsProtocol } from './stream/stream-socket.ts'
import { startTls } from './tls/start-tls.ts'

export interface Endpoint {
  readonly to: Destination
  readonly port: Port
}

export type EndReason = 'client' | 'upstream' | 'idle' | 'policy' | 'limit' | 'error'

/** The policy allows the connection. */
export interface Admitted {
  readonly allowed: Allowed
  /** The grant that this connection consumed. It is valid for this connection only. */
  readonly once: Sourced<AllowRule> | undefined
  /** The number of the connection in the audit, if it was held. */
  readonly number: number | undefined
}

export class Route {
  readonly number: number
  readonly endpoint: Endpoint
  readonly #allowed: Allowed
  readonly #once: Sourced<AllowRule> | undefined
  readonly #shared: GatewayContext
  readonly #since = performance.now()
  readonly #cancellation = new Cancellation()
  #upstream: ByteStream | undefined
  #address: Address | undefined
  #isOver: boolean = false
  #isSecured: boolean = false
  /** The current rules plus the grant of this route, cached until the policy changes. */
  #widened: { readonly network: NetworkPolicy; readonly index: NetworkIndex } | undefined
  /** In a tunnel, bytes pass unjudged. In `requests`, each request is judged when it comes. */
  serves: 'tunnel' | 'requests' = 'tunnel'
  /** Opened, and no request has come. Some programs check a pinned certificate after the handshake, and say nothing. */
  isSilent: boolean = false
  /** The requests that are being served, as they were allowed. HTTP/1.1 has one at a time. */
  readonly requests = new Set<RequestLine>()

  /** Undefined when the audit could not be written. Without a record there is no connection. */
  static open(shared: GatewayContext, endpoint: Endpoint, admitted: Admitted): Route | undefined {
    const route = new Route(shared, endpoint, admitted)
    const { allowed } = admitted
    const isRecorded = shared.record({
      kind: 'connection-allowed',
      connection: route.number,
      ...auditTarget(endpoint),
      rule: printRule(allowed.rule),
      from: showSource(allowed.source),
    })
    if (!isRecorded) return undefined
    shared.stats.allowed++
    return route
  }

  private constructor(shared: GatewayContext, endpoint: Endpoint, { allowed, once, number }: Admitted) {
    this.#shared = shared
    this.endpoint = endpoint
    this.#allowed = allowed
    this.#once = once
    this.number = number ?? shared.nextNumber()
  }

  get #isTrusted(): boolean {
    return this.#shared.authority !== undefined
  }

  get upstream(): ByteStream | undefined {
    return this.#upstream
  }

  get isUsable(): boolean {
    const upstream = this.#upstream
    return (
      upstream !== undefined &&
      !this.#isOver &&
      !upstream.ended &&
      upstream.isWritable &&
      upstream.held.length === 0
    )
  }

  /** Allowed and recorded, but not dialled. */
  get isFresh(): boolean {
    return this.#upstream === undefined && !this.#isOver
  }

  /** The verdict of the policy that is in force now. */
  verdict(network: NetworkPolicy = this.#shared.network()): ConnectionVerdict {
    return decideConnection(this.#indexOf(network), this.endpoint.to, this.endpoint.port)
  }

  /** Set when a tunnel to this endpoint would avoid a rule about requests, or a secret. TLS to it must be opened. */
  deniesTunnel(): Denied | undefined {
    const verdict = this.verdict()
    if (!verdict.ok) return verdict
    return this.#mustOpen(this.#shared.network(), verdict) ? denyOtherProtocol(verdict) : undefined
  }

  /** For a person whose program does not take an opened connection. */
  whyOpened(): string {
    const verdict = this.verdict()
    const by = verdict.ok ? openedBy(this.#shared.network().index, verdict) : 'a rule about requests'
    return `pen opens this host for ${by}; to pass it through, allow it with "open": false`
  }

  leadsTo(endpoint: Endpoint): boolean {
    return endpoint.port === this.endpoint.port && sameDestination(endpoint.to, this.endpoint.to)
  }

  /** Returns the upstream, or the reason for its absence. Records a failure; the caller records a denial. */
  async dial(): Promise<ByteStream | { readonly kind: 'denied'; readonly refusal: Refusal } | DialFailure> {
    const judgedBy = this.#shared.network()
    const result = await this.#shared.dialer.dial(this.#allowed.dial, this.#cancellation, network =>
      this.#indexOf(network),
    )
    if (this.#isOver) {
      if (result.kind === 'connected') result.stream.socket.destroy()
      return { kind: 'failed', reason: 'given-up', why: 'the gateway closed the connection' }
    }
    if (result.kind === 'connected') {
      this.#address = result.address
      this.#upstream = result.stream
      const current = this.#shared.network()
      const denied = current === judgedBy ? undefined : this.#denialBy(current)
      if (denied === undefined) return this.#upstream
      // The policy became narrower during the dial.
      this.#isOver = true
      this.#upstream.reset()
      return { kind: 'denied', refusal: refusalOf(denied) }
    }
    if (result.kind === 'denied') {
      this.#isOver = true
      return { kind: 'denied', refusal: refusalOf(result.denied) }
    }
    this.fail(result.reason, result.why)
    return result
  }

  /** Begins TLS to the server, if that is still to be done. Undefined when done. Records a failure. */
  async secure(protocol: TlsProtocol = 'http/1.1'): Promise<DialFailure | undefined> {
    const upstream = this.#upstream
    if (upstream === undefined || this.#isSecured) return undefined
    const { to } = this.endpoint
    const { trust, limits } = this.#shared
    const serverName = 'name' in to ? to.name : to.address
    const why = upstream.socket.isSecure
      ? 'proxy'
      : await startTls(upstream, { isServer: false, serverName, ca: trust, protocol }, limits.headMs)
    this.#isSecured = true
    if (why === undefined) return undefined
    return this.failTls(why)
  }

  /** Records that TLS to the server failed. */
  failTls(why: keyof typeof TLS_FAILURES): DialFailure {
    const text = why === 'incomplete' ? `${TLS_FAILURES[why]}. ${this.whyOpened()}` : TLS_FAILURES[why]
    const failure = failed(why === 'certificate' ? 'upstream-certificate' : 'upstream-tls', text)
    this.fail(failure.reason, failure.why)
    return failure
  }

  /** Records that an allowed connection failed. */
  fail(reason: string, why: string): void {
    const about = this.#finish()
    if (about === undefined) return
    this.#shared.stats.failed++
    this.#shared.record({ kind: 'connection-failed', ...about, reason, why })
    this.#upstream?.reset()
  }

  end(reason: EndReason): void {
    if (reason === 'client' && this.isSilent) {
      this.fail('untrusted-authority', `${SILENT}. ${this.whyOpened()}`)
      return
    }
    const about = this.#finish()
    if (about === undefined) return
    this.#cancellation.cancel()
    const { sent: bytesUp = 0, received: bytesDown = 0 } = this.#upstream ?? {}
    this.#shared.record({ kind: 'connection-closed', ...about, bytesUp, bytesDown, reason })
    if (reason === 'client' || reason === 'upstream') this.#upstream?.socket.destroy()
    else this.#upstream?.reset()
  }

  /** Returns what the last record says in every case. Undefined when it is written already. */
  #finish() {
    if (this.#isOver) return undefined
    this.#isOver = true
    this.#shared.stats.bytesUp += this.#upstream?.sent ?? 0
    this.#shared.stats.bytesDown += this.#upstream?.received ?? 0
    const ms = Math.round(performance.now() - this.#since)
    return { connection: this.number, ...auditTarget(this.endpoint, this.#address), ms }
  }

  isAllowedBy(policy: NetworkPolicy): boolean {
    return this.#denialBy(policy) === undefined
  }

  /** Judges the name again, and the address that was dialled for it. */
  #denialBy(network: NetworkPolicy): Denied | undefined {
    const index = this.#indexOf(network)
    const verdict = this.verdict(network)
    if (!verdict.ok) return verdict
    if (this.#mustOpen(network, verdict)) {
      if (this.serves === 'tunnel') return denyOtherProtocol(verdict)
      for (const request of this.requests) {
        const judged = decideRequest(verdict, request)
        if (!judged.ok) return judged
      }
    }
    if (this.#address === undefined || verdict.dial.kind === 'host-service') return undefined
    const check = this.#shared.dialer.check(index, this.#address, verdict.dial)
    return check.ok ? undefined : check
  }

  #mustOpen({ index }: NetworkPolicy, verdict: Allowed): boolean {
    return mustOpen(index, verdict, this.#isTrusted) || this.#shared.vault?.searches(verdict.dial) === true
  }

  #indexOf(network: NetworkPolicy): NetworkIndex {
    if (this.#once === undefined) return network.index
    if (this.#widened?.network !== network) this.#widened = { network, index: withGrant(network, this.#once) }
    return this.#widened.index
  }
}

const SILENT = 'the program closed the connection without a request: it may pin certificates'

const TLS_FAILURES = {
  certificate: 'the server has no certificate for this name that this machine trusts',
  incomplete:
    'the server broke off TLS. It may want a client certificate, which an opened connection cannot carry',
  proxy: 'a host that pen opens cannot be reached through a proxy that speaks TLS itself',
}

export const auditTarget = ({ to, port }: Endpoint, dialled?: Address) => ({
  name: 'name' in to ? to.name : undefined,
  address: dialled ?? ('address' in to ? to.address : undefined),
  port,
})

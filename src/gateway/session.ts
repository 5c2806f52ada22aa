/** One connection of the sandbox: its client, its route upstream, and the reply when it is refused. */
import type { Address } from '../policy/network/address.ts'
import type { Port } from '../policy/network/port.ts'
import { admit } from './admit.ts'
import { classifyFirstBytes } from './first-bytes.ts'
import type { GatewayContext } from './gateway-context.ts'
import {
  ACCESS_DENIED,
  denialLine,
  denialPage,
  failureLine,
  failurePage,
  INTERNAL_ERROR,
  sshDisconnect,
  startsSsh,
} from './http/denial-page.ts'
import type { Refusal } from './refusal.ts'
import { auditTarget, type Endpoint, type EndReason, Route } from './route.ts'
import { ByteStream } from './stream/byte-stream.ts'
import type { StreamSocket } from './stream/stream-socket.ts'
import { replyInTls } from './tls/tls-reply.ts'

/** A connection of the sandbox that the door has accepted. No byte of it has been read. */
export interface Accepted {
  readonly socket: StreamSocket
  /** What the program dialled. */
  readonly to: { readonly address: Address; readonly port: Port }
  readonly via: 'transparent' | 'proxy'
  /** Set when other users can reach the listener too. A client must send it before it gets any other reply. */
  readonly secret?: string | undefined
}

/** The protocol of a reply to the client. */
export type ReplyProtocol = 'http' | 'http-head' | 'tls' | 'opaque'

export class Session {
  readonly client: ByteStream
  readonly shared: GatewayContext
  /** The target in the record of a refusal that names no host. */
  readonly dialled: Endpoint
  route: Route | undefined
  /** Server bytes have reached the client, so a reply of the gateway would corrupt the stream. */
  hasServerSpoken: boolean = false
  #isUndecided: boolean = true

  constructor(shared: GatewayContext, { socket, to }: Pick<Accepted, 'socket' | 'to'>, onOver: () => void) {
    this.shared = shared
    this.dialled = { to: { address: to.address }, port: to.port }
    this.client = new ByteStream(socket, shared.buffers)
    this.client.onOverrun = () => this.overrun()
    shared.stats.open++
    shared.stats.undecided++
    this.client.onClose = () => {
      shared.stats.open--
      this.decided()
      // Cancels a dial that has no client any more. A tunnel closes its other end itself.
      if (this.route !== undefined && !this.isTunnel) this.route.end('client')
      onOver()
    }
  }

  /** In a tunnel each end closes the other. */
  isTunnel: boolean = false

  get lastActive(): number {
    return Math.max(this.client.lastActive, this.route?.upstream?.lastActive ?? 0)
  }

  get isHalfClosed(): boolean {
    return this.client.ended || this.route?.upstream?.ended === true
  }

  /** The program has closed its end, and its last bytes are sent or refused. */
  get isFlushed(): boolean {
    const { client } = this
    if (client.closed) return true
    if (!client.ended || client.buffered > client.socket.unsent) return false
    const upstream = this.route?.upstream
    if (upstream === undefined) return this.route === undefined && !this.#isUndecided
    return upstream.closed || upstream.socket.unsent === 0
  }

  decided(): void {
    if (!this.#isUndecided) return
    this.#isUndecided = false
    this.shared.stats.undecided--
  }

  /** Asks the policy (and the user, if it holds) and writes the record. Undefined when it refused. The caller dials. */
  async openRoute(endpoint: Endpoint, protocol?: ReplyProtocol): Promise<Route | undefined> {
    const admission = await admit(this.shared, this.client, endpoint)
    if (admission.kind === 'denied') {
      const { refusal, number } = admission
      await this.refuse(refusal, endpoint, protocol, { number })
      return undefined
    }
    this.decided()
    if (admission.kind === 'allowed') this.route = Route.open(this.shared, endpoint, admission)
    if (this.route === undefined) this.client.reset()
    return this.route
  }

  /** Undefined when the dial failed and the client has its reply. Without `protocol`, the first bytes decide. */
  async dial(route: Route, protocol?: ReplyProtocol): Promise<ByteStream | undefined> {
    const result = await route.dial()
    if (result instanceof ByteStream) {
      result.onOverrun = () => this.overrun()
      return result
    }
    if (result.kind === 'denied') {
      await this.refuse(result.refusal, route.endpoint, protocol, { number: route.number })
      return undefined
    }
    const spoken = protocol ?? (await this.#detectProtocol())
    await this.#reply(spoken, hasBody => failurePage(result, hasBody), INTERNAL_ERROR, failureLine(result))
    return undefined
  }

  /** Writes one record, then replies in the client's protocol. Without `protocol`, waits for the first bytes. */
  async refuse(
    refusal: Refusal,
    about: Endpoint | undefined,
    protocol?: ReplyProtocol,
    { number, raw }: { readonly number?: number | undefined; readonly raw?: string | undefined } = {},
  ): Promise<void> {
    const { shared } = this
    shared.stats.denied++
    // A connection that has a record also gets a last one, beyond any rate limit.
    if (number === undefined && !shared.mayDeny()) return this.client.reset()
    const { reason, why, rule, from, fix, request } = refusal
    const connection = number ?? shared.nextNumber()
    const target = auditTarget(about ?? this.dialled)
    const denial = { reason, why, rule, from, fix }
    shared.record({ kind: 'connection-denied', connection, ...target, raw, ...request, ...denial })
    const spoken = protocol ?? (await this.#detectProtocol())
    await this.#reply(spoken, hasBody => denialPage(refusal, hasBody), ACCESS_DENIED, denialLine(refusal))
  }

  /** The same reply for HTTP, TLS and SSH. */
  async #reply(
    protocol: ReplyProtocol,
    page: (hasBody: boolean) => string,
    alert: Buffer,
    line: string,
  ): Promise<void> {
    this.decided()
    const { client } = this
    const { lingerMs } = this.shared.limits
    if (this.hasServerSpoken) client.reset()
    else if (protocol === 'tls') {
      if (!(await replyInTls(this, isHead => page(!isHead)))) client.finish(alert, lingerMs)
    } else if (protocol !== 'opaque') client.finish(page(protocol !== 'http-head'), lingerMs)
    else if (startsSsh(client.held)) client.finish(sshDisconnect(line), lingerMs)
    else client.reset()
  }

  async #detectProtocol(): Promise<ReplyProtocol> {
    const { client } = this
    const { silenceMs, denyWithinMs } = this.shared.limits
    if (client.held.length === 0) await client.more(silenceMs)
    for (let end = performance.now() + denyWithinMs; ; ) {
      const first = classifyFirstBytes(client.held)
      if (first.kind === 'refused') return first.as
      if (first.kind === 'http') return httpReply(client.held)
      if (first.kind !== 'more') return first.kind
      if (first.likely === 'http') return httpReply(client.held)
      if (client.held.length === 0 || !(await client.more(end - performance.now()))) return first.likely
    }
  }

  /** Ends both sides: a peer that does not read blocks the other side. */
  overrun(): void {
    this.shared.countRejected('held-bytes')
    this.end('limit')
  }

  end(reason: EndReason): void {
    this.route?.end(reason)
    this.client.reset()
  }
}

/** A reply to HEAD has no body. */
export const httpReply = (held: Buffer): ReplyProtocol =>
  held.toString('latin1', 0, 5) === 'HEAD ' ? 'http-head' : 'http'

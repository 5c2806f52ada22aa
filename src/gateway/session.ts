/** One connection of the sandbox: its end inside, its way out, and how it is told no. */
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
import type { Accepted } from './stream/accepted.ts'
import { ByteStream } from './stream/byte-stream.ts'

/** In which protocol the client is answered. */
export type ReplyProtocol = 'http' | 'http-head' | 'tls' | 'opaque'

/** The same, as each protocol has it. */
interface Answer {
  readonly page: string
  readonly alert: Buffer
  readonly line: string
}

export class Session {
  readonly client: ByteStream
  readonly shared: GatewayContext
  /** What a refusal is about that names nobody: the gateway's own address. */
  readonly dialled: Endpoint
  route: Route | undefined
  /** Bytes of a server have reached the client, so an answer of pen's own would land in the middle of something. */
  hasServerSpoken: boolean = false
  #isUndecided: boolean = true
  #isOver: boolean = false

  constructor(shared: GatewayContext, { socket, to }: Pick<Accepted, 'socket' | 'to'>, onOver: () => void) {
    this.shared = shared
    this.dialled = { to: { address: to.address }, port: to.port }
    this.client = new ByteStream(socket, shared.held)
    this.client.onOverrun = () => this.overrun()
    shared.stats.open++
    shared.stats.undecided++
    this.client.onClose = () => {
      shared.stats.open--
      this.decided()
      this.#isOver = true
      // A dial that nobody waits for is given up, and a tunnel's other end learns how this one ended.
      if (this.route !== undefined && !this.isTunnel) this.route.end('client')
      onOver()
    }
  }

  /** Two ends that are joined close each other. */
  isTunnel: boolean = false

  get isOver(): boolean {
    return this.#isOver
  }

  get lastActive(): number {
    return Math.max(this.client.lastActive, this.route?.upstream?.lastActive ?? 0)
  }

  get isHalfClosed(): boolean {
    return this.client.ended || this.route?.upstream?.ended === true
  }

  /** The program is gone, and what it said last is on its way or refused. */
  get isSaid(): boolean {
    const { client } = this
    if (client.closed) return true
    if (!client.ended || client.holds > client.socket.unsent) return false
    const upstream = this.route?.upstream
    if (upstream === undefined) return this.route === undefined && !this.#isUndecided
    return upstream.closed || upstream.socket.unsent === 0
  }

  decided(): void {
    if (!this.#isUndecided) return
    this.#isUndecided = false
    this.shared.stats.undecided--
  }

  /** Verdict, of a person if need be, then audit; the caller dials. Undefined when the client has been told no. */
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

  /** Undefined when the client has been told what went wrong; without a protocol, in that of the bytes that came meanwhile. */
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
    const said = protocol ?? (await this.#detectProtocol())
    this.#reply(said, {
      page: failurePage(result, said !== 'http-head'),
      alert: INTERNAL_ERROR,
      line: failureLine(result),
    })
    return undefined
  }

  /** One record, then a word in the client's own protocol. Without a protocol, its first bytes are waited for. */
  async refuse(
    refusal: Refusal,
    about: Endpoint | undefined,
    protocol?: ReplyProtocol,
    { number, raw }: { readonly number?: number | undefined; readonly raw?: string | undefined } = {},
  ): Promise<void> {
    const { shared } = this
    shared.stats.denied++
    // Whatever began with a record ends with one, however many there are.
    if (number === undefined && !shared.mayDeny()) return this.client.reset()
    const { reason, why, rule, from, fix } = refusal
    shared.record({
      kind: 'connection-denied',
      connection: number ?? shared.nextNumber(),
      ...auditTarget(about ?? this.dialled),
      raw,
      reason,
      why,
      rule,
      from,
      fix,
    })
    const said = protocol ?? (await this.#detectProtocol())
    this.#reply(said, {
      page: denialPage(refusal, said !== 'http-head'),
      alert: ACCESS_DENIED,
      line: denialLine(refusal),
    })
  }

  #reply(protocol: ReplyProtocol, { page, alert, line }: Answer): void {
    this.decided()
    const { client } = this
    const { lingerMs } = this.shared.limits
    if (this.hasServerSpoken) client.reset()
    else if (protocol === 'tls') client.finish(alert, lingerMs)
    else if (protocol !== 'opaque') client.finish(page, lingerMs)
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

  /** Both ends go: a peer that does not read keeps the other one waiting for nothing. */
  overrun(): void {
    this.shared.countUnheard('held-bytes')
    this.end('limit')
  }

  end(reason: EndReason): void {
    this.route?.end(reason)
    this.client.reset()
  }
}

/** The answer to a HEAD has no body. */
export const httpReply = (held: Buffer): ReplyProtocol =>
  held.toString('latin1', 0, 5) === 'HEAD ' ? 'http-head' : 'http'

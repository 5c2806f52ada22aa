/** Serves the HTTP/1 requests of a connection in order. Each is judged and recorded before any byte goes upstream. */

import { badRequest, type Refusal } from '../refusal.ts'
import type { Endpoint, EndReason, Route } from '../route.ts'
import { type AnswerScan, PATIENCE_MS } from '../secrets/answer-scan.ts'
import type { ReplyProtocol, Session } from '../session.ts'
import type { ByteStream } from '../stream/byte-stream.ts'
import { joinStreams } from '../stream/join-streams.ts'
import { BodyReader } from './body.ts'
import { failurePage } from './denial-page.ts'
import { findHeadEnd } from './field.ts'
import { type Forwarding, type ForwardOutcome, forwardRequest } from './forward.ts'
import { type RequestHead, readRequestHead } from './head.ts'
import { holdRequest } from './hold-request.ts'
import { type HttpMode, judgeRequest } from './judge.ts'
import { judgeOutgoing } from './outgoing.ts'

/** Returns the endpoint of a CONNECT that was allowed and dialled. Otherwise the connection is over. */
export async function serveHttp(session: Session, mode: HttpMode): Promise<Endpoint | undefined> {
  const about = mode.kind === 'fixed' ? mode.endpoint : undefined
  for (;;) {
    const request = await readHead(session, about)
    if (request === undefined) return undefined
    const protocol: ReplyProtocol = request.method === 'HEAD' ? 'http-head' : 'http'
    const judgement = judgeRequest(request, mode)
    if (judgement.kind === 'refused') {
      await refuse(session, judgement.refusal, about, protocol, judgement.raw)
      return undefined
    }
    // A malformed first chunk is refused before anything goes upstream.
    const body = new BodyReader(session.client, request.framing)
    const firstPiece = judgement.kind === 'forward' ? body.step() : undefined
    if (body.state === 'malformed') {
      await refuse(session, badRequest(body.why), judgement.endpoint, protocol)
      return undefined
    }
    const route = await routeTo(session, judgement.endpoint, protocol)
    if (route === undefined) return undefined
    if (judgement.kind === 'connect') {
      if (!(await isDialled(session, route, protocol, false))) return undefined
      if (!(await session.client.write('HTTP/1.1 200 Connection established\r\n\r\n'))) session.end('client')
      return session.client.closed ? undefined : judgement.endpoint
    }
    const isSecure = mode.kind === 'fixed' && mode.isSecure
    const line = { method: request.method, path: judgement.path }
    const outgoing =
      (await holdRequest(session.shared, session.client, route, line)) ??
      judgeOutgoing(session, route, { ...judgement, request, isSecure })
    if (outgoing.kind === 'refused') {
      await refuse(session, outgoing.refusal, judgement.endpoint, protocol)
      return undefined
    }
    if (outgoing.kind === 'unrecorded') {
      session.end('error')
      return undefined
    }
    const ready = await readyToSend(session, { ...judgement, ...outgoing.forwarding, body, firstPiece })
    if (ready === undefined) {
      session.end('client')
      return undefined
    }
    if ('reason' in ready) {
      await refuse(session, ready, judgement.endpoint, protocol)
      return undefined
    }
    if (!(await isDialled(session, route, protocol, isSecure))) {
      ready.release?.()
      return undefined
    }
    const outcome = await forwardRequest(session.client, route, ready.forwarding, session.shared.limits)
    ready.release?.()
    if (!(await settle(session, route, outcome, protocol, outgoing.forwarding.scan))) return undefined
    outgoing.done()
  }
}

/** Undefined when the client broke off. Most requests need nothing. */
const readyToSend = async (
  session: Session,
  forwarding: Forwarding,
): ReturnType<typeof import('./sign-outgoing.ts').signOutgoing> =>
  forwarding.exchange !== undefined
    ? (await import('./exchange.ts')).exchangeOutgoing(session, forwarding, forwarding.exchange)
    : forwarding.sign === undefined
      ? { forwarding }
      : (await import('./sign-outgoing.ts')).signOutgoing(session, forwarding, forwarding.sign)

/** True when the connection stays open for the next request. */
async function settle(
  session: Session,
  route: Route,
  outcome: ForwardOutcome,
  protocol: ReplyProtocol,
  scan: AnswerScan | undefined,
): Promise<boolean> {
  const { client } = session
  switch (outcome.kind) {
    case 'keep':
      return true
    case 'close':
      route.end('upstream')
      client.finish('', session.shared.limits.lingerMs)
      return false
    case 'cut':
      // In TLS 1.3 a server that wants a client certificate says so after the handshake.
      if (outcome.by === 'upstream' && route.upstream?.socket.isSecure && route.upstream.received === 0) {
        const failure = route.failTls('incomplete')
        client.finish(failurePage(failure, protocol === 'http'), session.shared.limits.lingerMs)
        return false
      }
      // In the middle of a response, only a reset shows the client that it is incomplete.
      session.end(outcome.by)
      return false
    case 'upgrade': {
      const { upstream } = route
      if (upstream === undefined) return false
      session.isTunnel = true
      const join = (): Promise<EndReason> => joinStreams(client, upstream)
      route.end(await (scan === undefined ? join() : joinScanned(upstream, scan, join)))
      return false
    }
    case 'bad-request':
      await refuse(session, badRequest(outcome.why), route.endpoint, protocol)
      return false
    case 'bad-answer':
      route.fail('bad-answer', outcome.why)
      client.finish(
        failurePage({ reason: 'bad-answer', why: outcome.why }, protocol === 'http'),
        session.shared.limits.lingerMs,
      )
      return false
  }
}

/** Reuses the open route if it leads there. A session has one route, and sessions never share routes. */
async function routeTo(
  session: Session,
  endpoint: Endpoint,
  protocol: ReplyProtocol,
): Promise<Route | undefined> {
  const { route: open, shared } = session
  if (open !== undefined) {
    const isUsable = open.isUsable || open.isFresh
    if (isUsable && open.leadsTo(endpoint) && open.isAllowedBy(shared.network())) return open
    open.end(isUsable ? 'client' : 'upstream')
    session.route = undefined
  }
  const route = await session.openRoute(endpoint, protocol)
  if (route !== undefined) route.serves = 'requests'
  return route
}

/** False when the dial or the TLS handshake failed, and the client has its reply. */
async function isDialled(
  session: Session,
  route: Route,
  protocol: ReplyProtocol,
  isSecure: boolean,
): Promise<boolean> {
  if (route.upstream === undefined && (await session.dial(route, protocol)) === undefined) return false
  const failure = isSecure ? await route.secure() : undefined
  if (failure === undefined) return true
  session.client.finish(failurePage(failure, protocol === 'http'), session.shared.limits.lingerMs)
  return false
}

/** The answer has begun, and no more heads follow. A value is replaced in whatever the server sends. */
function joinScanned(
  upstream: ByteStream,
  scan: AnswerScan,
  join: () => Promise<EndReason>,
): Promise<EndReason> {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isLate = false
  // Before the join, which passes on the bytes that came with the head.
  upstream.gate = held => {
    clearTimeout(timer)
    const count = scan.settle(held, upstream.ended ? 'end' : isLate ? 'late' : 'more')
    if (scan.waiting > 0 && !isLate) timer = setTimeout(passAll, PATIENCE_MS)
    return count
  }
  const passAll = (): void => {
    isLate = true
    upstream.passHeld()
    isLate = false
  }
  const joined = join()
  // After the join, which sets its own.
  const { onEnd } = upstream
  upstream.onEnd = () => {
    passAll()
    onEnd?.()
  }
  return joined
}

/** Undefined when there is no next request, or it was refused. */
async function readHead(session: Session, about: Endpoint | undefined): Promise<RequestHead | undefined> {
  const { client, shared } = session
  const { limits } = shared
  let scanned = 0
  let deadline: number | undefined
  for (;;) {
    if (client.held.length > 0 && session.route !== undefined) session.route.isSilent = false
    // One empty line before the head is allowed, because old clients send it after a body.
    if (scanned === 0 && client.held[0] === 0x0d && client.held[1] === 0x0a) client.consume(2)
    const end = findHeadEnd(client.held, scanned, limits.maxRequestHead)
    if (end.kind === 'end') {
      const request = readRequestHead(client.consume(end.end), limits)
      if (request.kind === 'request') return request
      await refuse(session, badRequest(request.why, request.status), about, 'http')
      return undefined
    }
    if (end.kind === 'bad') {
      await refuse(session, badRequest(end.why, end.status), about, 'http')
      return undefined
    }
    scanned = end.scanned
    // A head has a deadline from its first byte. Between two requests the idle timeout of the policy applies.
    if (client.held.length > 0 || (session.route === undefined && about === undefined))
      deadline ??= performance.now() + limits.headMs
    if (await client.more(deadline === undefined ? undefined : deadline - performance.now())) continue
    if (client.ended || client.closed || client.held.length === 0) {
      session.route?.end('client')
      client.finish('', limits.lingerMs)
    } else await refuse(session, badRequest('its head is incomplete', 408), about, 'http')
    return undefined
  }
}

async function refuse(
  session: Session,
  refusal: Refusal,
  about: Endpoint | undefined,
  protocol: ReplyProtocol,
  raw?: string,
): Promise<void> {
  session.route?.end('client')
  session.route = undefined
  await session.refuse(refusal, about, protocol, { raw })
}

/**
 * Serves one connection. The policy judges the name (or address) and the port. Then the first bytes must agree with
 * that verdict on every port: the server name in TLS, every request in HTTP. Until then no client byte goes upstream.
 * A silent client may wait for the server to speak first, so the gateway dials for it and passes server bytes at once.
 */
import { plainDenial } from './admit.ts'
import { classifyFirstBytes, startsLikeText } from './first-bytes.ts'
import { NOT_PROXY } from './http/judge.ts'
import { serveHttp } from './http/serve.ts'
import { OpaqueGate } from './opaque-gate.ts'
import { authenticate } from './proxy-secret.ts'
import { type Refusal, refusalOf } from './refusal.ts'
import type { Endpoint } from './route.ts'
import { type Accepted, httpReply, type ReplyProtocol, type Session } from './session.ts'
import type { ByteStream } from './stream/byte-stream.ts'
import { joinStreams } from './stream/join-streams.ts'
import { type HelloReading, readClientHello } from './tls/client-hello.ts'
import { watchForSecondHello } from './tls/hello-gate.ts'
import { openTls } from './tls/open-tls.ts'
import { checkServerName } from './tls/server-name.ts'

export async function serveConnection(session: Session, { to, via, secret }: Accepted): Promise<void> {
  if (secret !== undefined && !(await authenticate(session, secret))) return
  if (via === 'proxy') return serveProxy(session)
  const name = session.shared.names.nameOf(to.address)
  const endpoint: Endpoint = { to: name === undefined ? { address: to.address } : { name }, port: to.port }
  const denied = plainDenial(session.shared, endpoint)
  if (denied !== undefined) return session.refuse(refusalOf(denied), endpoint)
  if (session.client.held.length === 0) await session.client.more(session.shared.limits.graceMs)
  await serveByFirstBytes(session, endpoint)
}

async function serveProxy(session: Session): Promise<void> {
  const { client, shared } = session
  if (client.held.length === 0) await client.more(shared.limits.headMs)
  const first = classifyFirstBytes(client.held)
  const isTls = first.kind === 'tls' || ('likely' in first && first.likely === 'tls')
  if (isTls || (client.held.length > 0 && !startsLikeText(client.held)))
    return session.refuse(NOT_PROXY, undefined, isTls ? 'tls' : 'opaque')
  const connectTo = await serveHttp(session, { kind: 'proxy' })
  if (connectTo !== undefined) await serveByFirstBytes(session, connectTo)
}

/** The endpoint is allowed. If the session has a route, it is dialled already. */
async function serveByFirstBytes(session: Session, endpoint: Endpoint): Promise<void> {
  const { client } = session
  if (client.held.length === 0 && !(await waitWithServer(session, endpoint))) return
  const decided = (held: Buffer) => {
    const first = classifyFirstBytes(held)
    return first.kind === 'more' ? undefined : first
  }
  const first =
    (await client.readUntil(decided, session.shared.limits.headMs)) ?? classifyFirstBytes(client.held)
  switch (first.kind) {
    case 'http':
      if (session.hasServerSpoken)
        return refuseBytes(session, endpoint, 'opaque', 'a request after the server spoke')
      session.route?.upstream?.unpipe()
      await serveHttp(session, { kind: 'fixed', endpoint, isSecure: false })
      return
    case 'tls':
      return serveTls(session, endpoint)
    case 'opaque':
      return serveOpaque(session, endpoint)
    case 'refused':
      return refuseBytes(session, endpoint, first.as, first.why)
    case 'more':
      // No more bytes came. Bytes that could become a request never pass as another protocol.
      if (client.closed) return session.end('client')
      if (client.ended && first.likely === 'opaque') return serveOpaque(session, endpoint)
      return refuseBytes(session, endpoint, first.likely, 'its first bytes are not complete')
  }
}

/** Dials for a silent client. False when the connection is over. */
async function waitWithServer(session: Session, endpoint: Endpoint): Promise<boolean> {
  const { client } = session
  const route = session.route ?? (await session.openRoute(endpoint))
  if (route === undefined) return false
  if (client.closed) {
    session.end('client')
    return false
  }
  // In HTTP and TLS the client speaks first, and nothing else may go there.
  if (route.deniesTunnel() !== undefined) {
    if (await client.more()) return true
    session.end('client')
    return false
  }
  const upstream = route.upstream ?? (await session.dial(route))
  if (upstream === undefined) return false
  upstream.onClose = () => {
    if (upstream.broken) session.end('upstream')
  }
  upstream.pipeTo(client)
  while (client.held.length === 0)
    if (!(await client.more())) {
      if (client.closed) session.end('client')
      else await tunnel(session, endpoint, 'opaque')
      return false
    }
  session.hasServerSpoken = upstream.received > 0
  return true
}

async function serveTls(session: Session, endpoint: Endpoint): Promise<void> {
  const { client, shared } = session
  const { maxHello } = shared.limits
  const first = await readHello(session)
  const judge = (hello: Exclude<HelloReading, { kind: 'more' }>) =>
    hello.kind === 'bad'
      ? { refusal: badHello(hello.why) }
      : checkServerName(shared.network().index, endpoint, hello.serverName)
  const refused = judge(first)
  if (refused !== undefined) return refuse(session, endpoint, 'tls', refused.refusal, refused.raw)
  const route = session.route ?? (await session.openRoute(endpoint, 'tls'))
  if (route === undefined) return
  if (route.deniesTunnel() !== undefined)
    return openTls(session, route, first.kind === 'hello' ? first.protocols : [])
  await tunnel(session, endpoint, 'tls', upstream =>
    watchForSecondHello({
      client,
      upstream,
      maxHello,
      judged: first.kind === 'hello' ? first.length : 0,
      refuses: second => {
        const again = judge(second)
        if (again !== undefined) void refuse(session, endpoint, 'tls', again.refusal, again.raw)
        return again !== undefined
      },
    }),
  )
}

async function serveOpaque(session: Session, endpoint: Endpoint): Promise<void> {
  // A server that speaks first is not an HTTP server.
  if (session.hasServerSpoken) return tunnel(session, endpoint, 'opaque')
  const gate = new OpaqueGate(session.client)
  const why = gate.check()
  if (why !== undefined) return refuseBytes(session, endpoint, 'http', why)
  await tunnel(session, endpoint, 'opaque', upstream =>
    gate.watch(upstream, found => void refuse(session, endpoint, 'http', badBytes(found))),
  )
}

async function readHello({ client, shared }: Session): Promise<Exclude<HelloReading, { kind: 'more' }>> {
  const { headMs, maxHello } = shared.limits
  let need = 0
  const read = await client.readUntil(held => {
    if (held.length < need) return undefined
    const reading = readClientHello(held, maxHello)
    if (reading.kind !== 'more') return reading
    need = reading.need
    return undefined
  }, headMs)
  return read ?? { kind: 'bad', why: 'it is not complete' }
}

const badHello = (why: string): Refusal => ({
  reason: 'bad-hello',
  why: `the server name cannot be read from the TLS ClientHello: ${why}`,
  fix: 'use an ordinary TLS client',
})

async function tunnel(
  session: Session,
  endpoint: Endpoint,
  protocol: ReplyProtocol,
  watch?: (upstream: ByteStream) => void,
): Promise<void> {
  const route = session.route ?? (await session.openRoute(endpoint, protocol))
  if (route === undefined) return
  const denied = route.deniesTunnel()
  if (denied !== undefined) return refuse(session, endpoint, protocol, refusalOf(denied))
  const upstream = route.upstream ?? (await session.dial(route, protocol))
  if (upstream === undefined) return
  session.isTunnel = true
  watch?.(upstream)
  route.end(await joinStreams(session.client, upstream))
}

const badBytes = (why: string): Refusal => ({
  reason: 'refused-protocol',
  why: `the bytes may not go to a server: ${why}`,
  fix: 'speak TLS, HTTP/1.1 or the protocol of the service',
})

const refuseBytes = (
  session: Session,
  endpoint: Endpoint,
  protocol: ReplyProtocol,
  why: string,
): Promise<void> =>
  refuse(session, endpoint, protocol === 'http' ? httpReply(session.client.held) : protocol, badBytes(why))

/** Drops a dialled upstream, also in the middle of a tunnel. Both records carry the same connection number. */
async function refuse(
  session: Session,
  endpoint: Endpoint,
  protocol: ReplyProtocol,
  refusal: Refusal,
  raw?: string,
): Promise<void> {
  const { route } = session
  if (route?.upstream !== undefined) {
    route.upstream.unpipe()
    // The close of the upstream must not close the client before it gets the reply.
    route.upstream.onClose = undefined
  }
  route?.end('policy')
  session.route = undefined
  await session.refuse(refusal, endpoint, protocol, { raw, number: route?.number })
}

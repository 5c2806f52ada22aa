/** Opens a TLS connection of the sandbox, with a certificate of the project's authority, and serves its requests. */
import { serveHttp } from '../http/serve.ts'
import type { Refusal } from '../refusal.ts'
import type { Route } from '../route.ts'
import type { Session } from '../session.ts'
import { startTls } from './start-tls.ts'

/** The ClientHello is judged and still held. The route is allowed and recorded. */
export async function openTls(session: Session, route: Route, protocols: readonly string[]): Promise<void> {
  const { client, shared } = session
  const { authority, limits } = shared
  const { endpoint } = route
  const { to } = endpoint
  if (authority === undefined || !('name' in to)) {
    session.route = undefined
    route.end('policy')
    return session.refuse(NOT_OPENED, endpoint, 'tls', { number: route.number })
  }
  route.serves = 'requests'
  // Programs that take both get HTTP/1.1. gRPC takes HTTP/2 only.
  const protocol = protocols.includes('h2') && !protocols.includes('http/1.1') ? 'h2' : 'http/1.1'
  const side = {
    isServer: true,
    read: client.consume(client.held.length),
    ...authority.leafFor(to.name),
    protocol,
  } as const
  if ((await startTls(client, side, limits.headMs)) !== undefined) {
    route.fail('untrusted-authority', `${UNTRUSTED}. ${route.whyOpened()}`)
    client.reset()
    return
  }
  route.isSilent = true
  if (protocol === 'http/1.1') {
    await serveHttp(session, { kind: 'fixed', endpoint, isSecure: true })
    return
  }
  const { serveHttp2 } = await import('../http/serve-http2.ts')
  await serveHttp2(session, route)
}

const NOT_OPENED: Refusal = {
  reason: 'not-opened',
  why: 'a rule about requests or a secret was added after the sandbox started, and programs in it do not trust pen yet',
  fix: 'pen restart',
}

const UNTRUSTED =
  "the program did not accept pen's certificate for this host: it pins certificates or has a list of its own"

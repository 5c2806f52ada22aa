/**
 * Every user of the machine can reach a proxy on the host's loopback. A client without the secret of the run gets a bare
 * 407, which says nothing about the policy or the request. Such connections are only counted, so that another user
 * cannot fill the audit.
 */
import { awaitHeadEnd, valuesOf } from './http/field.ts'
import { readRequestHead } from './http/head.ts'
import type { Session } from './session.ts'

export const PROXY_USER = 'pen'

/** Short, because a client without the secret costs a descriptor until then. */
const AUTH_MS = 2000

const ANSWER = [
  'HTTP/1.1 407 Proxy Authentication Required',
  'Proxy-Authenticate: Basic realm="pen"',
  'Content-Length: 0',
  'Connection: close',
  '\r\n',
].join('\r\n')

/** Checks a connection once, before its first request. Consumes no bytes. */
export async function authenticate(session: Session, secret: string): Promise<boolean> {
  if (await sendsSecret(session, secret)) return true
  const { client, shared } = session
  shared.countRejected('proxy-secret')
  session.decided()
  client.finish(ANSWER, shared.limits.lingerMs)
  return false
}

async function sendsSecret({ client, shared }: Session, secret: string): Promise<boolean> {
  const { limits } = shared
  const end = await awaitHeadEnd(client, limits.maxRequestHead, AUTH_MS)
  if (end?.kind !== 'end') return false
  const head = readRequestHead(client.held.subarray(0, end.end), limits)
  if (head.kind !== 'request') return false
  const values = valuesOf(head.fields, 'proxy-authorization')
  return values.length === 1 && isSame(values[0] ?? '', credentials(secret))
}

const credentials = (secret: string): string =>
  `Basic ${Buffer.from(`${PROXY_USER}:${secret}`).toString('base64')}`

/** node:crypto is loaded here, because it is slow to load and most sandboxes have no such secret. */
function isSame(given: string, expected: string): boolean {
  const { timingSafeEqual } = process.getBuiltinModule('node:crypto')
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

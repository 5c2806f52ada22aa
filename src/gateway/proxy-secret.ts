/**
 * A proxy on the host's own loopback can be reached by every user of the machine. Whoever does not send the secret of the run is told 407,
 * and nothing else: not what is allowed, not what is wrong with the request. Such connections are counted, not recorded one by one,
 * so that a stranger cannot fill the audit.
 */
import { findHeadEnd, valuesOf } from './http/field.ts'
import { readRequestHead } from './http/head.ts'
import type { Session } from './session.ts'

export const PROXY_USER = 'pen'

/** Strangers hold a descriptor meanwhile. */
const PATIENCE_MS = 2000

const ANSWER = [
  'HTTP/1.1 407 Proxy Authentication Required',
  'Proxy-Authenticate: Basic realm="pen"',
  'Content-Length: 0',
  'Connection: close',
  '\r\n',
].join('\r\n')

/** Asked once: a connection belongs to whoever made it. Nothing is taken from what was sent. */
export async function isKnown(session: Session, secret: string): Promise<boolean> {
  if (await sendsSecret(session, secret)) return true
  const { client, shared } = session
  shared.countUnheard('proxy-secret')
  session.decided()
  client.finish(ANSWER, shared.limits.lingerMs)
  return false
}

async function sendsSecret({ client, shared }: Session, secret: string): Promise<boolean> {
  const { limits } = shared
  const late = performance.now() + PATIENCE_MS
  for (let scanned = 0; ; ) {
    const end = findHeadEnd(client.held, scanned, limits.maxRequestHead)
    if (end.kind === 'bad') return false
    if (end.kind === 'end') {
      const head = readRequestHead(client.held.subarray(0, end.end), limits)
      if (head.kind !== 'request') return false
      const said = valuesOf(head.fields, 'proxy-authorization')
      return said.length === 1 && isSame(said[0] ?? '', credentials(secret))
    }
    scanned = end.scanned
    if (!(await client.more(late - performance.now()))) return false
  }
}

const credentials = (secret: string): string =>
  `Basic ${Buffer.from(`${PROXY_USER}:${secret}`).toString('base64')}`

/** The module takes longer to load than a sandbox to start, and most have no such secret. */
function isSame(said: string, expected: string): boolean {
  const { timingSafeEqual } = process.getBuiltinModule('node:crypto')
  const [a, b] = [Buffer.from(said), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

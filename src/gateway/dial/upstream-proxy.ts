/**
 * A company proxy that the user named. It gets a CONNECT for what the policy allowed, and resolves the name itself: which
 * address it dials is its operator's business, and pen's address guard ends there. The proxy's own address needs no rule
 * (the user named it). Its password is in the URL and goes nowhere but to the proxy.
 */
import type { Address } from '../../policy/network/address.ts'
import type { Dial } from '../../policy/network/decide-connection.ts'
import { type Port, parsePort } from '../../policy/network/port.ts'
import { findHeadEnd } from '../http/field.ts'
import { parseAuthority, printAuthority } from '../http/target.ts'
import type { StreamSocket } from '../stream/stream-socket.ts'
import { type DialResult, failed } from './dial-result.ts'
import type { Resolver } from './resolve.ts'

const MAX_ANSWER = 16_384
const ANSWER_MS = 15_000

export async function dialThroughProxy(
  connectAny: (addresses: readonly Address[], port: Port) => Promise<DialResult>,
  resolver: Resolver,
  proxy: URL,
  dial: Exclude<Dial, { readonly kind: 'host-service' }>,
): Promise<DialResult> {
  const isSecure = proxy.protocol === 'https:'
  const port = parsePort(proxy.port === '' ? (isSecure ? '443' : '80') : proxy.port)
  const authority = parseAuthority(proxy.hostname)
  if (!port.ok || !authority.ok) return failed('upstream-proxy', 'the upstream proxy has no usable address')
  const { to } = authority.value
  const hop =
    'address' in to ? { ok: true as const, addresses: [to.address] } : await resolver.resolve(to.name)
  if (!hop.ok) return failed('upstream-proxy', 'the upstream proxy could not be found')
  const result = await connectAny(hop.addresses, port.value)
  if (result.kind !== 'connected')
    return result.kind === 'failed' && result.reason === 'given-up'
      ? result
      : failed('upstream-proxy', 'the upstream proxy could not be reached')
  const socket = isSecure
    ? await import('../tls/tls-socket.ts').then(tls => tls.secured(result.socket, to, ANSWER_MS))
    : result.socket
  if (typeof socket === 'string') return failed('upstream-proxy', socket)
  const refusal = await askFor(socket, dial, credentials(proxy))
  if (refusal === undefined) return { kind: 'connected', socket, address: undefined }
  socket.destroy()
  return failed('upstream-proxy', refusal)
}

/** Undefined when the tunnel stands, else what went wrong. The proxy's own words are not passed on. */
function askFor(
  socket: StreamSocket,
  dial: { readonly port: Port } & Exclude<Dial, { readonly kind: 'host-service' }>,
  authorization: string,
): Promise<string | undefined> {
  const target = printAuthority(
    dial.kind === 'name' ? { name: dial.host } : { address: dial.address },
    dial.port,
  )
  return new Promise(resolve => {
    let held = Buffer.alloc(0)
    let scanned = 0
    const settle = (refusal: string | undefined): void => {
      clearTimeout(timer)
      resolve(refusal)
    }
    const fail = (): void => settle('the upstream proxy closed the connection')
    const timer = setTimeout(() => settle('the upstream proxy did not answer'), ANSWER_MS)
    const data = (piece: Buffer): void => {
      held = Buffer.concat([held, piece])
      const end = findHeadEnd(held, scanned, MAX_ANSWER)
      if (end.kind === 'bad') settle('the upstream proxy gave a malformed answer')
      if (end.kind === 'more') scanned = end.scanned
      if (end.kind !== 'end') return
      // What follows is the server's, and waits for whoever attaches next.
      socket.detach(held.subarray(end.end))
      const status = /^HTTP\/1\.[01] ([0-9]{3})(?: |\r)/.exec(held.toString('latin1', 0, 64))?.[1]
      settle(status?.startsWith('2') ? undefined : `the upstream proxy answered ${status ?? 'with nonsense'}`)
    }
    // It may say goodbye and stay half open: that is no answer either.
    socket.attach({ data, end: fail, drain: () => undefined, close: fail })
    const request = `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`
    socket.write(Buffer.from(request, 'latin1'))
  })
}

function credentials({ username, password }: URL): string {
  if (username === '' && password === '') return ''
  const pair = `${decoded(username)}:${decoded(password)}`
  return `Proxy-Authorization: Basic ${Buffer.from(pair).toString('base64')}\r\n`
}

/** A percent sign that encodes nothing stands for itself, as in other clients. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

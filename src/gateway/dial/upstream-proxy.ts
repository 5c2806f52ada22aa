/**
 * Dials through an upstream proxy that the user configured, such as a company proxy. The proxy gets a CONNECT for an
 * allowed destination and resolves the name itself, so pen cannot check the final address. The proxy's own address needs
 * no rule. The password in its URL goes only to the proxy.
 */
import type { Address } from '../../policy/network/address.ts'
import type { Dial } from '../../policy/network/decide-connection.ts'
import { type Port, parsePort } from '../../policy/network/port.ts'
import { awaitHeadEnd } from '../http/field.ts'
import { parseAuthority, printAuthority } from '../http/target.ts'
import type { ByteStream } from '../stream/byte-stream.ts'
import { hostTrust } from '../tls/host-trust.ts'
import { startTls } from '../tls/start-tls.ts'
import { type DialResult, failed } from './dial-result.ts'
import type { Resolver } from './resolve.ts'

const MAX_ANSWER = 16_384
const ANSWER_MS = 15_000

/** The certificate must match the name or address in the user's config. */
const FAILURES = {
  certificate: 'the upstream proxy has no valid certificate',
  incomplete: 'the upstream proxy did not complete its TLS handshake',
}

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
  const { stream } = result
  if (isSecure) {
    const serverName = 'name' in to ? to.name : to.address
    const failure = await startTls(stream, { isServer: false, serverName, ca: hostTrust() }, ANSWER_MS)
    if (failure !== undefined) {
      stream.socket.destroy()
      return failed('upstream-proxy', FAILURES[failure])
    }
  }
  const refusal = await requestTunnel(stream, dial, credentials(proxy))
  if (refusal === undefined) return { kind: 'connected', stream, address: undefined }
  stream.socket.destroy()
  return failed('upstream-proxy', refusal)
}

/** Undefined when the tunnel is open, else a text about the failure. Text of the proxy is not passed on. */
async function requestTunnel(
  stream: ByteStream,
  dial: Exclude<Dial, { readonly kind: 'host-service' }>,
  authorization: string,
): Promise<string | undefined> {
  const to = dial.kind === 'name' ? { name: dial.host } : { address: dial.address }
  const target = printAuthority(to, dial.port)
  void stream.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`)
  const end = await awaitHeadEnd(stream, MAX_ANSWER, ANSWER_MS)
  if (end === undefined)
    return stream.ended || stream.closed
      ? 'the upstream proxy closed the connection'
      : 'the upstream proxy did not answer'
  if (end.kind === 'bad') return 'the upstream proxy gave a malformed answer'
  // The bytes that follow come from the server.
  const answer = stream.consume(end.end).toString('latin1', 0, 64)
  const status = /^HTTP\/1\.[01] ([0-9]{3})(?: |\r)/.exec(answer)?.[1]
  return status?.startsWith('2')
    ? undefined
    : `the upstream proxy answered ${status ?? 'with a malformed status'}`
}

function credentials({ username, password }: URL): string {
  if (username === '' && password === '') return ''
  const pair = `${decoded(username)}:${decoded(password)}`
  return `Proxy-Authorization: Basic ${Buffer.from(pair).toString('base64')}\r\n`
}

/** An invalid percent encoding is taken literally, as other clients do. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

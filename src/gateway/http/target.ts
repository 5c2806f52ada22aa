/** Parses the destination in a request target and in a Host field. Other spellings are refused, never repaired. */
import { type Address, isIPv6, parseAddress } from '../../policy/network/address.ts'
import type { Destination } from '../../policy/network/decide-connection.ts'
import { parseHost } from '../../policy/network/host.ts'
import { type Port, parsePort } from '../../policy/network/port.ts'
import type { Parsed } from '../../policy/source.ts'

export interface Authority {
  readonly to: Destination
  readonly port: Port | undefined
}

export type RequestTarget =
  | { readonly form: 'origin'; readonly path: string }
  | { readonly form: 'absolute'; readonly authority: Authority; readonly path: string }
  | { readonly form: 'asterisk' }

export function parseAuthority(text: string): Parsed<Authority> {
  const match = /^(?:\[([0-9A-Fa-f:.]*)\]|([^:[\]]*))(?::(.*))?$/s.exec(text)
  if (match === null) return { ok: false, why: 'not a host and port' }
  const [, bracketed, plain = '', portText] = match
  const port = portText === undefined ? undefined : parsePort(portText)
  if (port?.ok === false) return port
  const to = bracketed === undefined ? parseName(plain) : parseBracketed(bracketed)
  return to.ok ? { ok: true, value: { to: to.value, port: port?.value } } : to
}

function parseName(text: string): Parsed<Destination> {
  const address = parseAddress(text)
  if (address.ok) return { ok: true, value: { address: address.value } }
  const host = parseHost(text)
  return host.ok ? { ok: true, value: { name: host.value } } : host
}

function parseBracketed(text: string): Parsed<Destination> {
  const address = parseAddress(text)
  if (address.ok && isIPv6(address.value)) return { ok: true, value: { address: address.value } }
  return { ok: false, why: 'only an IPv6 address has brackets' }
}

export function parseRequestTarget(method: string, text: string): Parsed<RequestTarget> {
  if (text === '*')
    return method === 'OPTIONS'
      ? { ok: true, value: { form: 'asterisk' } }
      : { ok: false, why: 'the target * is only for OPTIONS' }
  if (text.startsWith('/')) return { ok: true, value: { form: 'origin', path: inAscii(text) } }
  const match = /^http:\/\/([^/?]*)(.*)$/is.exec(text)
  if (match === null)
    return /^https:/i.test(text)
      ? { ok: false, why: 'https needs CONNECT' }
      : { ok: false, why: 'the target is neither a path nor an http:// address' }
  const [, authorityText = '', rest = ''] = match
  const authority = parseAuthority(authorityText)
  if (!authority.ok) return authority
  return {
    ok: true,
    value: {
      form: 'absolute',
      authority: authority.value,
      path: inAscii(rest.startsWith('/') ? rest : `/${rest}`),
    },
  }
}

/** Percent-encodes non-ASCII bytes, so that every server reads the same path. */
const inAscii = (path: string): string =>
  path.replaceAll(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)

export const sameDestination = (a: Destination, b: Destination): boolean =>
  'name' in a ? 'name' in b && a.name === b.name : 'address' in b && a.address === b.address

export const printDestination = (to: Destination): string => ('name' in to ? to.name : bracketed(to.address))

export const printAuthority = (to: Destination, port: Port | undefined): string =>
  port === undefined ? printDestination(to) : `${printDestination(to)}:${port}`

const bracketed = (address: Address): string => (isIPv6(address) ? `[${address}]` : address)

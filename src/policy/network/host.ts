import { type Parsed, type Refusal, refuse } from '../source.ts'
import { isWellFormedPunycode } from './punycode.ts'

declare const brand: unique symbol

/** A DNS name in canonical form: lower-case ASCII, no trailing dot. Never an address. Only `parseHost` makes one. */
export type Host = string & { readonly [brand]: 'Host' }

/** The only name for a service on the host's loopback. It is never resolved. */
export const HOST_SERVICE = 'host.pen.internal'

/**
 * Names come from sandboxes, projects and DNS messages, so they are hostile. Case and one trailing dot are normalized. Other
 * spellings that resolvers read differently are refused. The reason never repeats the text.
 * RFC 1123 forbids underscores in host names, but DNS names have them (`_dmarc.example.com`) and all resolvers agree on them.
 */
export function parseHost(text: string): Parsed<Host> {
  if (text === '') return refuse('a host name is missing')
  if (text.length > 254) return refuse('a host name has at most 253 characters')
  if (text.length <= 253 && PLAIN_NAME.test(text) && !text.includes('xn--'))
    return { ok: true, value: text as Host }
  const odd = ODD_CHARACTER.exec(text)
  if (odd !== null) return refuseCharacter(odd[0])

  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase()
  if (name.length > 253) return refuse('a host name has at most 253 characters')
  const labels = name.split('.')
  for (const label of labels) {
    if (label === '') return refuse('a part between dots is empty')
    if (label.length > 63) return refuse('a part between dots has at most 63 characters')
    if (label.startsWith('-') || label.endsWith('-'))
      return refuse('a part between dots cannot start or end with a hyphen')
    if (label.startsWith('xn--') && !isWellFormedPunycode(label))
      return refuse('an "xn--" part is not valid punycode')
  }
  // A C resolver reads `127.1`, `0x7f000001` and `0` as addresses. An "is this an IP address" check reads them as names.
  if (NUMERIC_LABEL.test(labels.at(-1) ?? ''))
    return refuse(
      'a name cannot end in a number: resolvers read it as an address',
      'write an address as four decimal numbers',
    )
  return { ok: true, value: name as Host }
}

/** Names of the machine that looks them up: the sandbox when looked up inside, the host when looked up by the gateway. */
export function isLoopbackName(host: Host): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || LOOPBACK_ALIASES.has(host)
}

/** Names that only a local resolver, a search domain or multicast DNS can answer. */
export function isLocalName(host: Host): boolean {
  return !host.includes('.') || isLoopbackName(host) || LOCAL_SUFFIX.test(host)
}

/** `a.b.example.com` is under `example.com`; `example.com` and `evilexample.com` are not. */
export function isUnder(host: Host, suffix: Host): boolean {
  return host.length > suffix.length && host.endsWith(suffix) && host[host.length - suffix.length - 1] === '.'
}

/** The fast path for most names, in half the time of the full checks. Length and `xn--` are checked separately. */
const PLAIN_NAME = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const ODD_CHARACTER = /[^A-Za-z0-9._-]/u
const NUMERIC_LABEL = /^(?:[0-9]+|0x[0-9a-f]*)$/
const LOOPBACK_ALIASES: ReadonlySet<string> = new Set([
  'localhost.localdomain',
  'ip6-localhost',
  'ip6-loopback',
])
const LOCAL_SUFFIX = /\.(?:local|localdomain|internal|intranet|lan|home|corp|private|home\.arpa)$/

function refuseCharacter(character: string): Refusal {
  const known = CHARACTER_REASONS[character]
  if (known !== undefined) return refuse(known)
  const code = character.codePointAt(0) ?? 0
  if (code > 0x7f)
    return refuse('a host name is plain ASCII', 'write the punycode form of the name ("xn--…")')
  if (code <= 0x20 || code === 0x7f) return refuse('a host name cannot hold a space or control character')
  return refuse(`a host name cannot hold "${character}"`)
}

const DELIMITER = 'a host name has no scheme, path, query or fragment'
const CHARACTER_REASONS: Readonly<Record<string, string>> = {
  '\0': 'a host name cannot hold a NUL byte: resolvers stop reading there',
  '%': 'a host name has no percent-encoding and no zone id',
  '@': 'a host name has no user name in front',
  ':': 'a host name has no colon',
  '/': DELIMITER,
  '?': DELIMITER,
  '#': DELIMITER,
  '\\': 'a host name has no backslash',
  '[': 'brackets are only for IPv6 addresses',
  ']': 'brackets are only for IPv6 addresses',
  '*': 'a star may only mean all subdomains, as in "*.example.com"',
  ',': 'an entry names one host: write one entry for each',
}

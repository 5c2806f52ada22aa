/**
 * What a client speaks, told from its first bytes. They are hostile: whoever can make them look like nothing in
 * particular gets a tunnel in which no name is checked. So whatever a lenient server could still take for TLS or HTTP
 * counts as TLS or HTTP, and its strict reader refuses it; and as long as that is open, nothing is forwarded.
 */
export type FirstBytes =
  /** Not decidable yet. `likely` is good enough to choose the words of a refusal, never to forward. */
  | { readonly kind: 'more'; readonly likely: 'http' | 'tls' | 'opaque' }
  | { readonly kind: 'tls' }
  | { readonly kind: 'http' }
  | { readonly kind: 'opaque' }
  /** Refused whoever is meant: the bytes name a client or a session that is not this one. */
  | { readonly kind: 'refused'; readonly as: 'http' | 'tls' | 'opaque'; readonly why: string }

const TLS: FirstBytes = { kind: 'tls' }
const HTTP: FirstBytes = { kind: 'http' }
const OPAQUE: FirstBytes = { kind: 'opaque' }
const MORE: FirstBytes = { kind: 'more', likely: 'opaque' }
const MORE_TLS: FirstBytes = { kind: 'more', likely: 'tls' }
const MORE_HTTP: FirstBytes = { kind: 'more', likely: 'http' }

/** Longest run of bytes that may stay undecided. */
export const MAX_UNDECIDED = 16_384

export function classifyFirstBytes(bytes: Uint8Array): FirstBytes {
  const first = bytes[0]
  if (first === undefined) return MORE
  if (isRecordType(first)) return classifyRecord(bytes)
  if (first >= 0x80) return classifyOldHello(bytes)
  if (startsLike(bytes, PROXY_V2)) return bytes.length < PROXY_V2.length ? MORE : FOREIGN
  if (startsLike(bytes, PROXY_V1) && bytes.length >= PROXY_V1.length) return FOREIGN
  return classifyText(bytes)
}

const HANDSHAKE = 22
const CLIENT_HELLO = 1
const WARNING = 1

/** RFC 8446 and RFC 6520: a change of cipher, an alert, a handshake, data, a heartbeat. */
const isRecordType = (byte: number | undefined): boolean => byte !== undefined && byte >= 20 && byte <= 24

/**
 * A ClientHello need not come first: OpenSSL passes over an empty change of cipher in front of it, BoringSSL and Java over a
 * warning. Nor under a version: Java reads whatever stands there. Binary protocols that begin with a length may look alike.
 */
function classifyRecord(bytes: Uint8Array): FirstBytes {
  const [type, major, , high = 0, low = 0, inside] = bytes
  if (major === undefined) return type === HANDSHAKE ? MORE_TLS : MORE
  if (major === 3) return TLS
  if (inside === undefined) return MORE
  const length = (high << 8) | low
  const isRecord =
    length === 0
      ? isRecordType(inside)
      : type === HANDSHAKE
        ? inside === CLIENT_HELLO
        : length === 2 && inside === WARNING
  return isRecord ? { kind: 'refused', as: 'tls', why: 'a TLS record of an unknown version' } : OPAQUE
}

/** Some servers still read the ClientHello of SSL 2, which has no room for a name. */
function classifyOldHello(bytes: Uint8Array): FirstBytes {
  const [, , type, major, minor] = bytes
  if (type === undefined) return MORE
  if (type !== 1) return OPAQUE
  if (major === undefined) return MORE
  if (major === 3)
    return { kind: 'refused', as: 'tls', why: 'a ClientHello in the form of SSL 2 names no server' }
  if (major !== 0) return OPAQUE
  if (minor === undefined) return MORE
  return minor === 2 ? { kind: 'refused', as: 'tls', why: 'SSL 2 names no server' } : OPAQUE
}

/**
 * Servers skip white space in front of a request, know methods that nobody registered, and some answer a line without
 * a version. A request line ends, so anything that could become one waits for its end.
 */
function classifyText(bytes: Uint8Array): FirstBytes {
  let at = 0
  while (at < bytes.length && isBlank(bytes[at] ?? 0)) at++
  if (at === bytes.length) return bytes.length > MAX_UNDECIDED ? OPAQUE_TOO_LONG : MORE
  const start = at
  while (at < bytes.length && isTokenByte(bytes[at] ?? 0)) at++
  if (at === start) return OPAQUE
  const next = bytes[at]
  if (next === undefined) {
    if (bytes.length > MAX_UNDECIDED) return OPAQUE_TOO_LONG
    return KNOWN_METHOD.test(ascii(bytes, start, at)) ? MORE_HTTP : MORE
  }
  // A word, then something that ends no method: `FIX`, AMQP, `@RSYNCD:` and their like.
  if (!isBlank(next)) return OPAQUE
  const end = endOfLine(bytes, at)
  const line = ascii(bytes, start, end)
  const isKnown = KNOWN_REQUEST.test(line)
  if (end === bytes.length) {
    if (bytes.length - start > MAX_UNDECIDED) return isKnown ? HTTP : OPAQUE_TOO_LONG
    return isKnown ? MORE_HTTP : MORE
  }
  if (VERSION.test(line) || UNVERSIONED.some(request => request.test(line))) return HTTP
  // Binary protocols have a NUL somewhere; a request has none, and its reader says so.
  return isKnown && bytes[end] === 0 ? HTTP : OPAQUE
}

/** Where the first line ends: at a LF, or at a NUL, which no request line holds. */
function endOfLine(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) if (bytes[at] === 0x0a || bytes[at] === 0) return at
  return bytes.length
}

const OPAQUE_TOO_LONG: FirstBytes = { kind: 'refused', as: 'opaque', why: 'the first line has no end' }

const KNOWN_METHOD = /^(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE|CONNECT|PRI)$/
const KNOWN_REQUEST = /^(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE|CONNECT|PRI)[ \t]/
const VERSION = /HTTP[ \t]*\/[ \t]*[0-9]/i
/**
 * A line without a version, as in HTTP/0.9, or with one of RTSP or anything else: Node and Java go on to read a Host behind it.
 * Memcached has small letters alone; and `KEYS *` is what people type to Redis.
 */
const UNVERSIONED: readonly RegExp[] = [
  /^GET[ \t]/,
  /^(?=\S*[A-Z])\S+\s+[/\\]/,
  /^(?!KEYS|PSUBSCRIBE)(?=\S*[A-Z])\S+\s+\*/,
  /^\S+\s+[a-z][a-z0-9+.-]*:\/\//i,
]

const PROXY_V1 = Buffer.from('PROXY ')
const PROXY_V2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')

/** A load balancer's word for the client behind it. A server that believes it would judge the rest by another client. */
const FOREIGN: FirstBytes = { kind: 'refused', as: 'opaque', why: 'a PROXY header names another client' }

/** What `isspace` in C says, since some server will skip it. */
const isBlank = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)

const ascii = (bytes: Uint8Array, from: number, to: number): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1')

function startsLike(bytes: Uint8Array, word: Uint8Array): boolean {
  for (let i = 0; i < word.length && i < bytes.length; i++) if (bytes[i] !== word[i]) return false
  return true
}

/** Whether a request could begin like this. */
export const startsLikeText = (bytes: Uint8Array): boolean =>
  isBlank(bytes[0] ?? 0) || isTokenByte(bytes[0] ?? 0)

/** RFC 9110, `tchar`. */
export function isTokenByte(byte: number): boolean {
  return TOKEN[byte] === 1
}

const TOKEN = new Uint8Array(256)
for (const character of "!#$%&'*+-.^_`|~") TOKEN[character.charCodeAt(0)] = 1
for (let i = 0; i < 26; i++) TOKEN[0x41 + i] = TOKEN[0x61 + i] = 1
for (let i = 0; i < 10; i++) TOKEN[0x30 + i] = 1

/**
 * Detects the protocol of a client from its first bytes. They are hostile: bytes that look like no known protocol get a
 * tunnel in which no name is checked. So everything that a lenient server could read as TLS or HTTP counts as TLS or
 * HTTP, and the strict reader then refuses it. Undecided bytes are never forwarded.
 */
export type FirstBytes =
  /** Undecided. `likely` chooses the protocol of a refusal, and never allows forwarding. */
  | { readonly kind: 'more'; readonly likely: 'http' | 'tls' | 'opaque' }
  | { readonly kind: 'tls' }
  | { readonly kind: 'http' }
  | { readonly kind: 'opaque' }
  /** Refused for every destination: the bytes claim another client, or name no server. */
  | { readonly kind: 'refused'; readonly as: 'http' | 'tls' | 'opaque'; readonly why: string }

const TLS: FirstBytes = { kind: 'tls' }
const HTTP: FirstBytes = { kind: 'http' }
const OPAQUE: FirstBytes = { kind: 'opaque' }
const MORE: FirstBytes = { kind: 'more', likely: 'opaque' }
const MORE_TLS: FirstBytes = { kind: 'more', likely: 'tls' }
const MORE_HTTP: FirstBytes = { kind: 'more', likely: 'http' }

/** Most bytes that may stay undecided. */
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

/** RFC 8446 and RFC 6520: change_cipher_spec, alert, handshake, application_data, heartbeat. */
const isRecordType = (byte: number | undefined): boolean => byte !== undefined && byte >= 20 && byte <= 24

/**
 * A ClientHello need not come first: OpenSSL skips an empty change_cipher_spec before it, BoringSSL and Java skip a
 * warning alert. Java also accepts any version. Binary protocols that begin with a length may look the same.
 */
function classifyRecord(bytes: Uint8Array): FirstBytes {
  const [type, major, , high = 0, low = 0, firstInside] = bytes
  if (major === undefined) return type === HANDSHAKE ? MORE_TLS : MORE
  if (major === 3) return TLS
  if (firstInside === undefined) return MORE
  const length = (high << 8) | low
  const isRecord =
    length === 0
      ? isRecordType(firstInside)
      : type === HANDSHAKE
        ? firstInside === CLIENT_HELLO
        : length === 2 && firstInside === WARNING
  return isRecord ? { kind: 'refused', as: 'tls', why: 'a TLS record of an unknown version' } : OPAQUE
}

/** Some servers still accept an SSL 2 ClientHello, which cannot carry a server name. */
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
 * Servers skip white space before a request, accept unregistered methods, and some answer a line without a version.
 * So the gateway waits for the end of every line that could be a request line.
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
  // A word that is followed by a byte which cannot end a method, as in FIX, AMQP and `@RSYNCD:`.
  if (!isBlank(next)) return OPAQUE
  const end = endOfLine(bytes, at)
  const line = ascii(bytes, start, end)
  const isKnown = KNOWN_REQUEST.test(line)
  if (end === bytes.length) {
    if (bytes.length - start > MAX_UNDECIDED) return isKnown ? HTTP : OPAQUE_TOO_LONG
    return isKnown ? MORE_HTTP : MORE
  }
  if (VERSION.test(line) || UNVERSIONED.some(request => request.test(line))) return HTTP
  // Binary protocols contain a NUL. A request does not, and its reader refuses one.
  return isKnown && bytes[end] === 0 ? HTTP : OPAQUE
}

/** The first line ends at an LF, or at a NUL, which no request line contains. */
function endOfLine(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) if (bytes[at] === 0x0a || bytes[at] === 0) return at
  return bytes.length
}

const OPAQUE_TOO_LONG: FirstBytes = { kind: 'refused', as: 'opaque', why: 'the first line has no end' }

const KNOWN_METHOD = /^(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE|CONNECT|PRI)$/
const KNOWN_REQUEST = /^(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE|CONNECT|PRI)[ \t]/
const VERSION = /HTTP[ \t]*\/[ \t]*[0-9]/i
/**
 * A request line without a version, as in HTTP/0.9, or with another one, such as RTSP. Node and Java still read the Host
 * field after it. Memcached commands are lower case, and `KEYS *` is a Redis command.
 */
const UNVERSIONED: readonly RegExp[] = [
  /^GET[ \t]/,
  /^(?=\S*[A-Z])\S+\s+[/\\]/,
  /^(?!KEYS|PSUBSCRIBE)(?=\S*[A-Z])\S+\s+\*/,
  /^\S+\s+[a-z][a-z0-9+.-]*:\/\//i,
]

const PROXY_V1 = Buffer.from('PROXY ')
const PROXY_V2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')

/** A load balancer's PROXY header names the client behind it. A server that trusts it would see another client. */
const FOREIGN: FirstBytes = { kind: 'refused', as: 'opaque', why: 'a PROXY header names another client' }

/** The white space of `isspace` in C, because some servers skip all of it. */
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
function isTokenByte(byte: number): boolean {
  return TOKEN[byte] === 1
}

const TOKEN = new Uint8Array(256)
for (const character of "!#$%&'*+-.^_`|~") TOKEN[character.charCodeAt(0)] = 1
for (let i = 0; i < 26; i++) TOKEN[0x41 + i] = TOKEN[0x61 + i] = 1
for (let i = 0; i < 10; i++) TOKEN[0x30 + i] = 1

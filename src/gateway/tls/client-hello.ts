/**
 * Reads the server name in a TLS ClientHello. The bytes are hostile. The gateway does not decrypt TLS, so every server
 * must read the same name. Everything that RFC 8446 and RFC 6066 do not allow is refused. With Encrypted Client Hello the
 * outer name counts. The inner one is as invisible as a Host field inside TLS.
 */
export type HelloReading =
  /** Needs at least this many bytes. */
  { readonly kind: 'more'; readonly need: number } | { readonly kind: 'bad'; readonly why: string } | Hello

interface Hello {
  readonly kind: 'hello'
  /** As written, one character per byte. Undefined without a server name. */
  readonly serverName: string | undefined
  /** The length of its records in bytes. */
  readonly length: number
  /** The protocols that it offers inside TLS (ALPN). */
  readonly protocols: readonly string[]
}

export const HANDSHAKE = 22
export const CLIENT_HELLO = 1
const SERVER_NAME = 0
const ALPN = 16
const HOST_NAME = 0
const MAX_RECORD = 16_384
/** Limits the work for a hello that is split into tiny records. */
const MAX_RECORDS = 1024

export function readClientHello(bytes: Uint8Array, max: number): HelloReading {
  const fragments: Uint8Array[] = []
  let gathered = 0
  let total: number | undefined
  for (let at = 0; ; ) {
    if (at + 5 > max) return bad('the ClientHello is too long')
    if (bytes.length < at + 5) return { kind: 'more', need: at + 5 }
    if (bytes[at] !== HANDSHAKE || bytes[at + 1] !== 3) return bad('not a handshake record')
    const length = u16(bytes, at + 3)
    if (length === 0 || length > MAX_RECORD) return bad('a record of an invalid length')
    const end = at + 5 + length
    if (end > max) return bad('the ClientHello is too long')
    // The type is checked as soon as it arrives, so that a wrong one is refused at once.
    if ((fragments[0]?.[0] ?? bytes[at + 5] ?? CLIENT_HELLO) !== CLIENT_HELLO)
      return bad('the first message is not a ClientHello')
    if (bytes.length < end) return { kind: 'more', need: end }
    if (fragments.length === MAX_RECORDS) return bad('the ClientHello is in too many records')
    fragments.push(bytes.subarray(at + 5, end))
    gathered += length
    at = end
    if (gathered < 4) continue
    total ??= messageLength(joined(fragments))
    if (total > max) return bad('the ClientHello is too long')
    if (gathered > total) return bad('its record contains more than the ClientHello')
    if (gathered === total) return readHello(new Fields(joined(fragments), 4, total), at)
  }
}

const joined = (fragments: readonly Uint8Array[]): Uint8Array =>
  fragments.length === 1 ? (fragments[0] ?? new Uint8Array(0)) : Buffer.concat(fragments)

const messageLength = (message: Uint8Array): number => 4 + (((message[1] ?? 0) << 16) | u16(message, 2))

function readHello(hello: Fields, length: number): HelloReading {
  hello.skip(2 + 32)
  const session = hello.vector(1)
  const suites = hello.vector(2)
  const compressions = hello.vector(1)
  if (session === undefined || suites === undefined || compressions === undefined) return MALFORMED
  if (session.left > 32 || suites.left < 2 || suites.left % 2 !== 0 || compressions.left < 1) return MALFORMED
  if (hello.left === 0) return { kind: 'hello', serverName: undefined, length, protocols: [] }
  const extensions = hello.vector(2)
  if (extensions === undefined || hello.left !== 0) return MALFORMED

  const seen = new Set<number>()
  let serverName: string | undefined
  let protocols: readonly string[] = []
  while (extensions.left > 0) {
    const type = extensions.number(2)
    const body = extensions.vector(2)
    if (type === undefined || body === undefined) return MALFORMED
    if (seen.has(type)) return bad('an extension appears twice in the ClientHello')
    seen.add(type)
    if (type === ALPN) protocols = readProtocols(body)
    if (type !== SERVER_NAME) continue
    const name = readServerName(body)
    if (typeof name !== 'string') return name
    serverName = name
  }
  return { kind: 'hello', serverName, length, protocols }
}

/** Only opened connections use the list, and then pen's own TLS refuses a malformed one. */
function readProtocols(body: Fields): string[] {
  const out: string[] = []
  const list = body.vector(2)
  for (let name = list?.vector(1); name !== undefined; name = list?.vector(1)) out.push(name.text())
  return out
}

function readServerName(body: Fields): string | HelloReading {
  const list = body.vector(2)
  if (list === undefined || body.left !== 0) return MALFORMED
  const type = list.number(1)
  const name = list.vector(2)
  if (type === undefined || name === undefined || name.left === 0) return MALFORMED
  if (type !== HOST_NAME) return bad('the server name is of an unknown type')
  if (list.left !== 0) return bad('the ClientHello names more than one server')
  return name.text()
}

const bad = (why: string): HelloReading => ({ kind: 'bad', why })
const MALFORMED = bad('a malformed ClientHello')

const u16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)

/** A cursor that cannot leave its range of the bytes. */
class Fields {
  readonly #bytes: Uint8Array
  #at: number
  readonly #end: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  /** Negative after a skip beyond the end. Then every read fails. */
  get left(): number {
    return this.#end - this.#at
  }

  skip(count: number): void {
    this.#at += count
  }

  number(width: 1 | 2): number | undefined {
    if (this.left < width) return undefined
    const value = width === 1 ? this.#bytes[this.#at] : u16(this.#bytes, this.#at)
    this.#at += width
    return value
  }

  /** A vector of TLS: a length, then that many bytes. */
  vector(width: 1 | 2): Fields | undefined {
    const length = this.number(width)
    if (length === undefined || this.left < length) return undefined
    const part = new Fields(this.#bytes, this.#at, this.#at + length)
    this.#at += length
    return part
  }

  text(): string {
    return Buffer.from(this.#bytes.subarray(this.#at, this.#end)).toString('latin1')
  }
}

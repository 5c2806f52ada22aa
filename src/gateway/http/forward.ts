/**
 * Forwards one request and its response. The gateway writes both heads itself, from the parsed fields and with its own
 * framing. So both sides always agree on where a message ends.
 */
import type { GatewayLimits } from '../limits.ts'
import type { Route } from '../route.ts'
import { type AnswerScan, LONG_PATIENCE_MS, PATIENCE_MS } from '../secrets/answer-scan.ts'
import type { AwsSigning } from '../secrets/aws-request.ts'
import type { TokenExchange } from '../secrets/token-exchange.ts'
import type { ByteStream } from '../stream/byte-stream.ts'
import { BodyReader, chunk, lastChunk } from './body.ts'
import { awaitHeadEnd, endToEnd, type Field, type Framing, listOf } from './field.ts'
import { type RequestHead, type ResponseHead, readResponseHead } from './head.ts'
import { passableTrailers } from './trailers.ts'
import { whyUnscannable } from './unscannable.ts'

export interface Forwarding {
  readonly request: RequestHead
  readonly path: string
  readonly host: string
  readonly body: BodyReader
  /** The part of the body that has arrived already. */
  readonly firstPiece: Buffer | undefined
  /** For answers that may hold a secret. */
  readonly scan?: AnswerScan | undefined
  /** Set when the request must be signed before it is sent. */
  readonly sign?: AwsSigning | undefined
  /** Set when tokens may be in the body and in the answer. */
  readonly exchange?: TokenExchange | undefined
  /** Passes on an answer that must be complete first. */
  readonly relay?: (client: ByteStream, upstream: ByteStream, head: ResponseHead) => Promise<ForwardOutcome>
  /** The secret whose placeholder is in a text. It is in no trailer: nothing replaces it there. */
  readonly secretIn?: (text: string) => string | undefined
  /** Called with the status of the final answer, before the client gets it. */
  readonly onAnswer?: (status: number) => void
}

/** Bytes of an answer's body that are copied to be sent with its head. */
const MOST_WITH_HEAD = 16_384

export type ForwardOutcome =
  | { readonly kind: 'keep' | 'close' | 'upgrade' }
  | { readonly kind: 'cut'; readonly by: 'client' | 'upstream' }
  | { readonly kind: 'bad-request' | 'bad-answer'; readonly why: string }

export async function forwardRequest(
  client: ByteStream,
  route: Route,
  forwarding: Forwarding,
  limits: GatewayLimits,
): Promise<ForwardOutcome> {
  const { upstream } = route
  if (upstream === undefined) return { kind: 'cut', by: 'upstream' }
  const { request, body } = forwarding
  const isUpgrade = asksForWebSocket(request)
  const sentBefore = client.sent
  const sending = sendRequest(upstream, forwarding, isUpgrade)
  const response = readResponse(client, upstream, forwarding, isUpgrade, limits)
  await Promise.race([response, sending])
  // The caller closes the upstream, which ends a response that is still being read.
  if (body.state === 'broken') return { kind: 'cut', by: 'client' }
  if (body.state === 'malformed')
    return client.sent > sentBefore ? { kind: 'cut', by: 'client' } : { kind: 'bad-request', why: body.why }
  const outcome = await response
  // The response came before the end of the request. The rest of the body must not be read as the next request.
  return outcome.kind === 'keep' && body.state !== 'complete' ? { kind: 'close' } : outcome
}

async function sendRequest(upstream: ByteStream, forwarding: Forwarding, isUpgrade: boolean): Promise<void> {
  const { request, path, host, body, firstPiece, sign, exchange } = forwarding
  const head = [`${request.method} ${path} HTTP/1.1`]
  let hasHost = false
  for (const { name, key, value } of endToEnd(request.fields))
    if (key === 'host') {
      head.push(`${name}: ${host}`)
      hasHost = true
    } else head.push(`${name}: ${value}`)
  if (!hasHost) head.splice(1, 0, `Host: ${host}`)
  head.push(...framingLines(request.framing))
  if (isUpgrade) head.push('Upgrade: websocket', 'Connection: Upgrade')
  else if (takesTrailers(request)) head.push('TE: trailers', 'Connection: TE')
  else if (request.minor === 0) head.push('Connection: close')
  if (!(await upstream.write(`${head.join('\r\n')}\r\n\r\n`))) return

  const isChunked = request.framing.kind === 'chunked'
  for (let piece = firstPiece ?? (await body.next()); piece !== undefined; piece = await body.next())
    if (!(await upstream.write(isChunked ? chunk(piece) : piece))) return
  if (!isChunked || body.state !== 'complete') return
  const secret = body.trailers
    .map(({ name, value }) => forwarding.secretIn?.(`${name}: ${value}`))
    .find(Boolean)
  if (secret !== undefined) {
    body.state = 'malformed'
    body.why = `a trailer has the placeholder of the secret ${secret}`
    return
  }
  // Those of a held body would be outside the signature, or could hold a token.
  const isHeld = sign !== undefined || exchange !== undefined
  await upstream.write(lastChunk(isHeld ? [] : passableTrailers(body.trailers)))
}

async function readResponse(
  client: ByteStream,
  upstream: ByteStream,
  forwarding: Forwarding,
  isUpgrade: boolean,
  limits: GatewayLimits,
): Promise<ForwardOutcome> {
  const { request, scan, onAnswer } = forwarding
  for (let informational = 0; ; informational++) {
    const read = await readHead(upstream, request.method, limits)
    if (read === undefined) return { kind: 'cut', by: 'upstream' }
    if ('why' in read) return { kind: 'bad-answer', why: `the server's response is ${read.why}` }
    const unscannable = scan && whyUnscannable(scan, { ...read, hasBody: read.framing.kind !== 'none' })
    if (unscannable !== undefined) return { kind: 'bad-answer', why: unscannable }
    const head = scan === undefined ? read : scanned(read, scan)
    if (head.status === 101 || head.status >= 200) onAnswer?.(head.status)
    if (head.status === 101) {
      if (!isUpgrade || !namesWebSocket(head.fields))
        return {
          kind: 'bad-answer',
          why: 'the server switched to a protocol that the request did not ask for',
        }
      await client.write(printHead(head, ['Upgrade: websocket', 'Connection: Upgrade']))
      return { kind: 'upgrade' }
    }
    if (head.status >= 200) return relayResponse(client, upstream, forwarding, head)
    if (informational >= limits.maxInformational)
      return { kind: 'bad-answer', why: 'the server sent too many 1xx responses' }
    // HTTP/1.0 has no 1xx responses.
    if (request.minor === 1) await client.write(printHead(head, []))
  }
}

async function relayResponse(
  client: ByteStream,
  upstream: ByteStream,
  { request, scan, relay }: Forwarding,
  head: ResponseHead,
): Promise<ForwardOutcome> {
  if (relay !== undefined) return relay(client, upstream, head)
  const isChunked = head.framing.kind === 'chunked' && request.minor === 1
  const isDelimited = head.framing.kind === 'none' || head.framing.kind === 'length' || isChunked
  const keeps =
    isDelimited && keepsAlive(request.minor, request.fields) && keepsAlive(head.minor, head.fields)
  const lines = isChunked ? framingLines(head.framing) : lengthLines(head)
  if (!keeps) lines.push('Connection: close')
  const body = new BodyReader(upstream, head.framing)
  const framed = (piece: Buffer): Buffer => (isChunked ? chunk(piece) : piece)
  const pass = (piece: Buffer): Promise<boolean> => client.write(framed(piece))
  // A short answer goes out in one write, and is one TLS record.
  const first = scan === undefined && upstream.held.length <= MOST_WITH_HEAD ? body.step() : undefined
  const printed = printHead(head, lines)
  const start = first === undefined ? printed : Buffer.concat([Buffer.from(printed, 'latin1'), framed(first)])
  if (!(await client.write(start))) return { kind: 'cut', by: 'client' }

  const pieces = scan === undefined ? body : new ScannedBody(body, scan, patienceFor(head))
  for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next())
    if (piece.length > 0 && !(await pass(piece))) return { kind: 'cut', by: 'client' }
  if (body.state !== 'complete') return { kind: 'cut', by: 'upstream' }
  const trailers = passableTrailers(body.trailers)
  if (trailers.some(({ name }) => scan?.isInName(name))) return { kind: 'cut', by: 'upstream' }
  const clean = trailers.map(field => ({ ...field, value: scan?.text(field.value) ?? field.value }))
  if (isChunked && !(await client.write(lastChunk(clean)))) return { kind: 'cut', by: 'client' }
  return { kind: keeps ? 'keep' : 'close' }
}

/** The pieces of an answer without values. One that may stay open does not keep its last bytes for long. */
class ScannedBody {
  readonly #body: BodyReader
  readonly #scan: AnswerScan
  readonly #patience: number | undefined
  #coming: Promise<Buffer | undefined> | undefined

  constructor(body: BodyReader, scan: AnswerScan, patience: number | undefined) {
    this.#body = body
    this.#scan = scan
    this.#patience = patience
  }

  async next(): Promise<Buffer | undefined> {
    this.#coming ??= this.#body.next()
    const patience = this.#patience
    if (patience !== undefined && this.#scan.waiting > 0 && (await isLate(this.#coming, patience))) {
      const passed = this.#scan.late()
      if (passed.length > 0) return passed
    }
    const piece = await this.#coming
    this.#coming = undefined
    if (piece !== undefined) return this.#scan.next(piece)
    return this.#scan.waiting > 0 ? this.#scan.rest() : undefined
  }
}

async function isLate(coming: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(() => resolve(true), ms)
  })
  const result = await Promise.race([late, coming.then(() => false)])
  clearTimeout(timer)
  return result
}

/** Undefined when the upstream closed without a byte. */
async function readHead(
  upstream: ByteStream,
  method: string,
  limits: GatewayLimits,
): Promise<ResponseHead | { readonly why: string } | undefined> {
  const end = await awaitHeadEnd(upstream, limits.maxResponseHead)
  if (end === undefined) return upstream.held.length === 0 ? undefined : { why: 'cut short' }
  const head = end.kind === 'end' ? readResponseHead(upstream.consume(end.end), method, limits) : end
  return head.kind === 'response' ? head : { why: `malformed: ${head.why}` }
}

const scanned = (head: ResponseHead, scan: AnswerScan): ResponseHead => ({
  ...head,
  reason: scan.text(head.reason),
  fields: head.fields.map(field => ({ ...field, value: scan.text(field.value) })),
})

/** An answer without a length may stay open, such as a watch in lines of JSON. */
function patienceFor({ fields, framing }: ResponseHead): number | undefined {
  const isEvents = fields.some(
    ({ key, value }) => key === 'content-type' && /^text\/event-stream\b/i.test(value),
  )
  return isEvents ? PATIENCE_MS : framing.kind === 'length' ? undefined : LONG_PATIENCE_MS
}

export function printHead(head: ResponseHead, lines: readonly string[]): string {
  const fields = endToEnd(head.fields).map(({ name, value }) => `${name}: ${value}`)
  return `${[`HTTP/1.1 ${head.status} ${head.reason}`, ...fields, ...lines].join('\r\n')}\r\n\r\n`
}

function framingLines(framing: Framing): string[] {
  if (framing.kind === 'length') return [`Content-Length: ${framing.length}`]
  return framing.kind === 'chunked' ? ['Transfer-Encoding: chunked'] : []
}

/** A response to HEAD, and a 304, may carry the length of a body that does not follow. */
function lengthLines({ framing, fields, status }: ResponseHead): string[] {
  if (framing.kind !== 'none') return framing.kind === 'length' ? framingLines(framing) : []
  const length = fields.find(field => field.key === 'content-length')
  return length === undefined || status === 204 ? [] : [`Content-Length: ${length.value}`]
}

const keepsAlive = (minor: 0 | 1, fields: readonly Field[]): boolean =>
  minor === 1 &&
  !listOf(fields, 'connection').includes('close') &&
  !listOf(fields, 'proxy-connection').includes('close')

const takesTrailers = ({ minor, fields }: RequestHead): boolean =>
  minor === 1 && listOf(fields, 'connection').includes('te') && listOf(fields, 'te').includes('trailers')

/** WebSocket is the only allowed upgrade. Others, such as h2c, are removed from the request. */
const asksForWebSocket = ({ method, minor, framing, fields }: RequestHead): boolean =>
  method === 'GET' && minor === 1 && framing.kind === 'none' && namesWebSocket(fields)

function namesWebSocket(fields: readonly Field[]): boolean {
  const upgrades = listOf(fields, 'upgrade')
  return (
    upgrades.length === 1 && upgrades[0] === 'websocket' && listOf(fields, 'connection').includes('upgrade')
  )
}

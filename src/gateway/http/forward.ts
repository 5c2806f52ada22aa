/**
 * One request and its answer. Both heads are written anew from what was read, with framing of the gateway's own, so that
 * neither side ever sees a byte that the other side meant as something else.
 */
import type { GatewayLimits } from '../limits.ts'
import type { Route } from '../route.ts'
import type { ByteStream } from '../stream/byte-stream.ts'
import { BodyReader, chunk, LAST_CHUNK } from './body.ts'
import { endToEnd, type Field, type Framing, findHeadEnd, listOf } from './field.ts'
import { type RequestHead, type ResponseHead, readResponseHead } from './head.ts'

export interface Forwarding {
  readonly request: RequestHead
  readonly path: string
  readonly host: string
  readonly body: BodyReader
  /** What of the body was there already. */
  readonly firstPiece: Buffer | undefined
}

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
  const answer = readAnswer(client, upstream, request, isUpgrade, limits)
  await Promise.race([answer, sending])
  // Whatever of the answer is still being read ends with the upstream, which the caller closes.
  if (body.state === 'broken') return { kind: 'cut', by: 'client' }
  if (body.state === 'malformed')
    return client.sent > sentBefore ? { kind: 'cut', by: 'client' } : { kind: 'bad-request', why: body.why }
  const outcome = await answer
  // An answer before the end of the request: what is left of it must not be taken for the next one.
  return outcome.kind === 'keep' && body.state !== 'complete' ? { kind: 'close' } : outcome
}

async function sendRequest(upstream: ByteStream, forwarding: Forwarding, isUpgrade: boolean): Promise<void> {
  const { request, path, host, body, firstPiece } = forwarding
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
  else if (request.minor === 0) head.push('Connection: close')
  if (!(await upstream.write(`${head.join('\r\n')}\r\n\r\n`))) return

  const isChunked = request.framing.kind === 'chunked'
  for (let piece = firstPiece ?? (await body.next()); piece !== undefined; piece = await body.next())
    if (!(await upstream.write(isChunked ? chunk(piece) : piece))) return
  if (isChunked && body.state === 'complete') await upstream.write(LAST_CHUNK)
}

async function readAnswer(
  client: ByteStream,
  upstream: ByteStream,
  request: RequestHead,
  isUpgrade: boolean,
  limits: GatewayLimits,
): Promise<ForwardOutcome> {
  for (let informational = 0; ; informational++) {
    const head = await readHead(upstream, request.method, limits)
    if (head === undefined) return { kind: 'cut', by: 'upstream' }
    if ('why' in head) return { kind: 'bad-answer', why: `its answer is ${head.why}` }
    if (head.status === 101) {
      if (!isUpgrade || !isWebSocket(head))
        return { kind: 'bad-answer', why: 'it changed to a protocol nobody asked for' }
      await client.write(printHead(head, ['Upgrade: websocket', 'Connection: Upgrade']))
      return { kind: 'upgrade' }
    }
    if (head.status >= 200) return relayAnswer(client, upstream, request, head)
    if (informational >= limits.maxInformational)
      return { kind: 'bad-answer', why: 'it never came to its answer' }
    // HTTP/1.0 knows no 1xx.
    if (request.minor === 1) await client.write(printHead(head, []))
  }
}

async function relayAnswer(
  client: ByteStream,
  upstream: ByteStream,
  request: RequestHead,
  head: ResponseHead,
): Promise<ForwardOutcome> {
  const isChunked = head.framing.kind === 'chunked' && request.minor === 1
  const isDelimited = head.framing.kind === 'none' || head.framing.kind === 'length' || isChunked
  const keeps = isDelimited && isKept(request.minor, request.fields) && isKept(head.minor, head.fields)
  const lines = isChunked ? framingLines(head.framing) : lengthLines(head)
  if (!keeps) lines.push('Connection: close')
  if (!(await client.write(printHead(head, lines)))) return { kind: 'cut', by: 'client' }

  const body = new BodyReader(upstream, head.framing)
  for (let piece = await body.next(); piece !== undefined; piece = await body.next())
    if (!(await client.write(isChunked ? chunk(piece) : piece))) return { kind: 'cut', by: 'client' }
  if (body.state !== 'complete') return { kind: 'cut', by: 'upstream' }
  if (isChunked && !(await client.write(LAST_CHUNK))) return { kind: 'cut', by: 'client' }
  return { kind: keeps ? 'keep' : 'close' }
}

/** Undefined when the upstream closed before it said anything. */
async function readHead(
  upstream: ByteStream,
  method: string,
  limits: GatewayLimits,
): Promise<ResponseHead | { readonly why: string } | undefined> {
  for (let scanned = 0; ; ) {
    const end = findHeadEnd(upstream.held, scanned, limits.maxResponseHead)
    if (end.kind === 'bad') return { why: `malformed: ${end.why}` }
    if (end.kind === 'end') {
      const head = readResponseHead(upstream.consume(end.end), method, limits)
      return head.kind === 'response' ? head : { why: `malformed: ${head.why}` }
    }
    scanned = end.scanned
    if (!(await upstream.more())) return upstream.held.length === 0 ? undefined : { why: 'cut short' }
  }
}

function printHead(head: ResponseHead, lines: readonly string[]): string {
  const fields = endToEnd(head.fields).map(({ name, value }) => `${name}: ${value}`)
  return `${[`HTTP/1.1 ${head.status} ${head.reason}`, ...fields, ...lines].join('\r\n')}\r\n\r\n`
}

function framingLines(framing: Framing): string[] {
  if (framing.kind === 'length') return [`Content-Length: ${framing.length}`]
  return framing.kind === 'chunked' ? ['Transfer-Encoding: chunked'] : []
}

/** The answer to a HEAD, or a 304, speaks of a length that does not follow. */
function lengthLines({ framing, fields, status }: ResponseHead): string[] {
  if (framing.kind !== 'none') return framing.kind === 'length' ? framingLines(framing) : []
  const length = fields.find(field => field.key === 'content-length')
  return length === undefined || status === 204 ? [] : [`Content-Length: ${length.value}`]
}

const isKept = (minor: 0 | 1, fields: readonly Field[]): boolean =>
  minor === 1 &&
  !listOf(fields, 'connection').includes('close') &&
  !listOf(fields, 'proxy-connection').includes('close')

/** The only change of protocol that is let through. Others, h2c among them, are left out of the request and so never happen. */
const asksForWebSocket = ({ method, minor, framing, fields }: RequestHead): boolean =>
  method === 'GET' && minor === 1 && framing.kind === 'none' && speaksOfWebSocket(fields)

const isWebSocket = ({ fields }: ResponseHead): boolean => speaksOfWebSocket(fields)

function speaksOfWebSocket(fields: readonly Field[]): boolean {
  const upgrades = listOf(fields, 'upgrade')
  return (
    upgrades.length === 1 && upgrades[0] === 'websocket' && listOf(fields, 'connection').includes('upgrade')
  )
}

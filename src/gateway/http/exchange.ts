/** A request to a sign-in server, and its answer: both are held, because pen replaces tokens in them. */
import { badRequest, type Refusal } from '../refusal.ts'
import { notExchanged, type TokenExchange } from '../secrets/token-exchange.ts'
import type { Session } from '../session.ts'
import type { ByteStream } from '../stream/byte-stream.ts'
import { BodyReader } from './body.ts'
import { type Forwarding, type ForwardOutcome, printHead } from './forward.ts'
import type { ResponseHead } from './head.ts'
import { holdBody } from './held-body.ts'

const MAX_ANSWER = 262_144

/** Undefined when the client broke off. */
export async function exchangeOutgoing(
  session: Session,
  forwarding: Forwarding,
  exchange: TokenExchange,
): Promise<{ readonly forwarding: Forwarding; readonly release?: () => void } | Refusal | undefined> {
  const { request, body } = forwarding
  const { vault, network } = session.shared
  const wasRemoved = (): boolean =>
    exchange.wasRemoved || vault?.isInForce(network().index, exchange.name) !== true
  const relay: Forwarding['relay'] = (client, upstream, head) =>
    relayAnswer(client, upstream, head, { exchange, wasRemoved })
  if (!exchange.mayCarry) return { forwarding: { ...forwarding, relay } }
  const held = await holdBody(session, forwarding, session.shared.limits.maxTokenRequest)
  if (held === undefined) {
    if (body.state === 'broken') return undefined
    return body.state === 'malformed' ? badRequest(body.why) : notExchanged('its body is too long')
  }
  const bytes = exchange.request(held.bytes)
  // pen has answered 100-continue itself.
  const fields = request.fields.filter(({ key }) => key !== 'expect')
  const firstPiece = bytes.length === 0 ? undefined : bytes
  return {
    forwarding: { ...forwarding, request: { ...request, fields }, firstPiece, relay },
    release: held.release,
  }
}

/** The whole answer, written again. The connection ends with it. */
async function relayAnswer(
  client: ByteStream,
  upstream: ByteStream,
  head: ResponseHead,
  { exchange, wasRemoved }: { readonly exchange: TokenExchange; readonly wasRemoved: () => boolean },
): Promise<ForwardOutcome> {
  const reader = new BodyReader(upstream, head.framing)
  const pieces: Buffer[] = []
  let length = 0
  for (let piece = await reader.next(); piece !== undefined; piece = await reader.next()) {
    length += piece.length
    if (length > MAX_ANSWER) return unreadable('is too long')
    pieces.push(Buffer.from(piece))
  }
  if (reader.state !== 'complete') return { kind: 'cut', by: 'upstream' }
  if (wasRemoved()) return unreadable('came after the sign-in was removed')
  const answer = exchange.answer(head.status, Buffer.concat(pieces))
  if (answer === undefined) return unreadable('is not JSON with tokens that pen understands')
  const lines = [`Content-Length: ${answer.length}`, 'Connection: close']
  const cleaned = { ...head, fields: exchange.cleanFields(head.fields) }
  const isSent = (await client.write(printHead(cleaned, lines))) && (await client.write(answer))
  return isSent ? { kind: 'close' } : { kind: 'cut', by: 'client' }
}

const unreadable = (why: string): ForwardOutcome => ({
  kind: 'bad-answer',
  why: `the answer of the sign-in server ${why}, so pen cannot keep its tokens outside`,
})

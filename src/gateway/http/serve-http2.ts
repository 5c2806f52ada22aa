/**
 * Serves opened connections of programs that speak HTTP/2 only, such as gRPC. Each stream is a request and is judged like
 * one of HTTP/1.1. The server must speak HTTP/2 too: nothing is translated. `node:http2` reads frames and enforces their
 * limits; names, values and the authority are checked here.
 */
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
  ServerHttp2Stream,
} from 'node:http2'
import { Transform } from 'node:stream'
import type { Waiter } from '../holds.ts'
import { badRequest, type Refusal } from '../refusal.ts'
import { auditTarget, type Route } from '../route.ts'
import { type AnswerScan, PATIENCE_MS } from '../secrets/answer-scan.ts'
import { notSigned } from '../secrets/aws-request.ts'
import { notExchanged } from '../secrets/token-exchange.ts'
import type { Session } from '../session.ts'
import { asDuplex } from '../stream/as-duplex.ts'
import { denialPage } from './denial-page.ts'
import { endToEnd, type Field, valuesOf } from './field.ts'
import type { RequestHead } from './head.ts'
import { holdRequest } from './hold-request.ts'
import { judgeRequest } from './judge.ts'
import { judgeOutgoing } from './outgoing.ts'
import { passableTrailers } from './trailers.ts'
import { whyUnscannable } from './unscannable.ts'

const MOST_STREAMS = 256
/** An error code of HTTP/2. */
const CANCEL = 8

export async function serveHttp2(session: Session, route: Route): Promise<void> {
  const { client, shared } = session
  const upstream = await session.dial(route, 'tls')
  if (upstream === undefined) return
  if ((await route.secure('h2')) !== undefined) return client.reset()
  const http2 = process.getBuiltinModule('node:http2')
  const settings = { maxConcurrentStreams: MOST_STREAMS, enablePush: false }
  const server = http2.createServer({ settings, maxHeaderListPairs: shared.limits.maxRequestFields })
  const outward = http2.connect('http://upstream', {
    createConnection: () => asDuplex(upstream),
    settings: { enablePush: false },
  })
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers) => void serveStream(session, route, outward, stream, headers),
  )
  server.on('sessionError', () => session.end('client'))
  outward.on('error', () => session.end('upstream'))
  outward.on('goaway', () => session.end('upstream'))
  server.emit('connection', asDuplex(client))
  await new Promise<void>(resolve => {
    const { onClose } = client
    client.onClose = () => {
      onClose?.()
      resolve()
    }
    if (client.closed) resolve()
    upstream.onClose = () => session.end('upstream')
  })
  outward.destroy()
  server.close()
}

async function serveStream(
  session: Session,
  route: Route,
  outward: ClientHttp2Session,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  route.isSilent = false
  stream.on('error', () => undefined)
  let trailers: readonly Field[] = []
  stream.on('trailers', found => {
    trailers = fieldsOf(found).filter(isWellFormed)
  })
  const judged = await judgeStream(session, route, stream, headers)
  if (stream.destroyed) {
    // Gone before the answer. What was recorded as allowed is not sent.
    if (judged !== undefined && 'done' in judged) judged.done()
  } else if (judged === undefined) session.end('error')
  else if ('reason' in judged) refuse(session, route, stream, judged)
  else {
    const { forwarding, done, host } = judged
    stream.on('close', done)
    const head = {
      ':method': forwarding.request.method,
      ':scheme': 'https',
      ':authority': host,
      ':path': forwarding.path,
      ...asHeaders(endToEnd(forwarding.request.fields)),
      ...(headers['te'] === 'trailers' && { te: 'trailers' }),
    }
    // Without such a field no trailers are sent, not even empty ones: some servers of gRPC end the connection then.
    const waitForTrailers = headers['trailer'] !== undefined
    const sent = outwardStream(() => outward.request(head, { waitForTrailers }))
    if (sent === undefined) return stream.close(CANCEL)
    sent.on('wantTrailers', () => {
      const secret = trailers
        .map(({ name, value }) => forwarding.secretIn?.(`${name}: ${value}`))
        .find(Boolean)
      if (secret === undefined)
        return unlessOver(sent, () => sent.sendTrailers(asHeaders(passableTrailers(trailers))))
      sent.close(CANCEL)
      refuse(session, route, stream, badRequest(`a trailer has the placeholder of the secret ${secret}`))
    })
    relay(stream, sent, forwarding.scan, status => forwarding.onAnswer?.(status))
  }
}

/** Undefined when the audit could not be written. */
async function judgeStream(
  session: Session,
  route: Route,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
) {
  const request = headOf(headers)
  if ('reason' in request) return request
  const judgement = judgeRequest(request, { kind: 'fixed', endpoint: route.endpoint, isSecure: true })
  if (judgement.kind === 'refused') return judgement.refusal
  if (judgement.kind === 'connect') return badRequest('a CONNECT')
  const line = { method: request.method, path: judgement.path }
  const outgoing =
    (await holdRequest(session.shared, new StreamWaiter(stream), route, line)) ??
    judgeOutgoing(session, route, { ...judgement, request, isSecure: true })
  if (outgoing.kind === 'unrecorded') return undefined
  if (
    outgoing.kind === 'forward' &&
    (outgoing.forwarding.sign ?? outgoing.forwarding.exchange) !== undefined
  ) {
    outgoing.done()
    return outgoing.forwarding.sign === undefined
      ? notExchanged('it uses HTTP/2')
      : notSigned('a request over HTTP/2', 'use HTTP/1.1')
  }
  return outgoing.kind === 'refused' ? outgoing.refusal : { ...outgoing, host: judgement.host }
}

/** A stream that waits for the user's answer. */
class StreamWaiter implements Waiter {
  readonly ended = false
  readonly #stream: ServerHttp2Stream
  #wake: () => void = () => undefined

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream
    stream.on('close', () => this.#wake())
  }

  get closed(): boolean {
    return this.#stream.destroyed || this.#stream.closed
  }

  more(ms: number): Promise<boolean> {
    return new Promise(resolve => {
      const timer = setTimeout(() => this.#wake(), ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve(false)
      }
    })
  }

  stopWaiting(): void {
    this.#wake()
  }
}

/** Undefined when the server ended the connection. */
function outwardStream(request: () => ClientHttp2Stream): ClientHttp2Stream | undefined {
  try {
    return request()
  } catch {
    return undefined
  }
}

/** The peer may end a stream at any moment, and writing to it throws then. */
function unlessOver(stream: ServerHttp2Stream | ClientHttp2Stream, write: () => void): void {
  if (stream.destroyed || stream.closed) return
  try {
    write()
  } catch {
    stream.close(CANCEL)
  }
}

/** Passes both bodies on, each as fast as its reader. */
function relay(
  stream: ServerHttp2Stream,
  sent: ClientHttp2Stream,
  scan: AnswerScan | undefined,
  onAnswer: (status: number) => void,
): void {
  const text = (one: unknown): string => (scan === undefined ? String(one) : scan.text(String(one)))
  // Only pen sets its own fields.
  const clean = (headers: object): OutgoingHttpHeaders =>
    Object.fromEntries(
      Object.entries(headers as Record<string, string | string[]>)
        .filter(([name]) => !name.startsWith('x-pen-'))
        .map(([name, value]) => [name, Array.isArray(value) ? value.map(text) : text(value)]),
    )
  let trailers: OutgoingHttpHeaders = {}
  sent.on('error', () => stream.close())
  sent.on('continue', () => unlessOver(stream, () => stream.additionalHeaders({ ':status': 100 })))
  // The server may end a call without an answer, and without an error.
  let isAnswered = false
  sent.on('close', () => {
    if (!isAnswered) stream.close(CANCEL)
  })
  sent.on('trailers', found => {
    if (fieldsOf(found).some(({ name }) => scan?.isInName(name))) stream.close(2)
    else trailers = clean(found)
  })
  sent.on('response', found => {
    const { ':status': status = 502, ...fields } = found
    onAnswer(status)
    isAnswered = true
    unlessOver(stream, () => {
      if (scan && whyUnscannable(scan, { status, fields: fieldsOf(fields), hasBody: true }) !== undefined) {
        stream.respond({ ':status': 502, 'x-pen-error': 'bad-answer' }, { endStream: true })
        sent.close()
        return
      }
      stream.respond({ ':status': status, ...clean(fields) }, { waitForTrailers: true })
      stream.on('wantTrailers', () => unlessOver(stream, () => stream.sendTrailers(trailers)))
      if (scan === undefined) sent.pipe(stream)
      else sent.pipe(scanning(scan, found['content-length'] === undefined)).pipe(stream)
    })
  })
  stream.on('close', () => sent.close(stream.rstCode))
  stream.on('aborted', () => sent.close(stream.rstCode))
  stream.pipe(sent)
}

function scanning(scan: AnswerScan, mayStayOpen: boolean): Transform {
  let timer: ReturnType<typeof setTimeout> | undefined
  const through = new Transform({
    transform: (chunk: Buffer, _, done) => {
      clearTimeout(timer)
      if (mayStayOpen) timer = setTimeout(() => through.push(scan.late()), PATIENCE_MS)
      done(null, scan.next(chunk))
    },
    flush: done => {
      clearTimeout(timer)
      done(null, scan.rest())
    },
    destroy: (error, done) => {
      clearTimeout(timer)
      done(error)
    },
  })
  return through
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const isWellFormed = ({ name, value }: Field): boolean => NAME.test(name) && VALUE.test(value)

/** The head as HTTP/1.1 would have it. All of it is hostile. */
function headOf(headers: IncomingHttpHeaders): RequestHead | Refusal {
  const fields = fieldsOf(headers)
  if (!fields.every(isWellFormed)) return badRequest('a malformed header field')
  const { ':method': method, ':path': target, ':authority': authority, ':scheme': scheme, host } = headers
  if (typeof method !== 'string' || !/^[A-Z][A-Z-]{0,31}$/.test(method))
    return badRequest('a malformed method')
  if (typeof target !== 'string' || !/^[\x21-\x7e]+$/.test(target) || target.includes('#'))
    return badRequest('a malformed path')
  if (typeof authority !== 'string' || scheme !== 'https')
    return badRequest('no authority, or another scheme')
  if (host !== undefined && host !== authority) return badRequest('the Host is not the authority')
  const others = fields.filter(({ key }) => key !== 'host')
  return {
    kind: 'request',
    method,
    target,
    minor: 1,
    fields: others,
    host: authority,
    framing: { kind: 'none' },
  }
}

function fieldsOf(headers: IncomingHttpHeaders): Field[] {
  const all = Object.entries(headers).filter(([name]) => !name.startsWith(':'))
  return all.flatMap(([name, value = []]) => [value].flat().map(one => ({ name, key: name, value: one })))
}

/** A name that appears twice has a list of values. */
const asHeaders = (fields: readonly Field[]): OutgoingHttpHeaders =>
  Object.fromEntries(fields.map(({ key }) => [key, valuesOf(fields, key)]))

/** Refuses one request. Other streams of the connection go on. */
function refuse({ shared }: Session, { endpoint }: Route, stream: ServerHttp2Stream, refusal: Refusal): void {
  shared.stats.denied++
  if (!shared.mayDeny()) {
    stream.close()
    return
  }
  const { reason, why, rule, from, fix, request } = refusal
  const denial = { reason, why, rule, from, fix }
  const connection = shared.nextNumber()
  shared.record({ kind: 'connection-denied', connection, ...auditTarget(endpoint), ...request, ...denial })
  // The answer has begun.
  if (stream.headersSent) {
    stream.close(CANCEL)
    return
  }
  const [, body = ''] = denialPage(refusal).split('\r\n\r\n')
  const fields = { 'content-type': 'text/plain; charset=utf-8', 'x-pen-denied': reason }
  unlessOver(stream, () => {
    stream.respond({ ':status': refusal.status ?? 403, ...fields })
    stream.end(body)
  })
}

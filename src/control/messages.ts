/**
 * What a command asks of a supervisor, and what it is told. A connection is one request. Both ends are this user's pen, but
 * perhaps of two versions, and whoever can open the socket may send anything: each end reads strictly, within bounds.
 *
 * A request is one frame; the answer another. After a request for an execution and its answer, the connection speaks the
 * language of executions (wire/exec-messages.ts), on channel 1.
 */
import { ERROR_CODES, type ErrorCode, knownError, PenError, showPlace } from '../base/error.ts'
import type { PortPair } from '../gateway/forward/forward.ts'
import type { Port } from '../policy/network/port.ts'
import { encodeFrame, type Frame, FrameDecoder, protocolError } from '../protocol/frame.ts'

/**
 * `order`: what it was started with, for whoever starts it anew. `own`: the connection stays open, and when it ends, so does the
 * sandbox: it is for a program that started one, and may be killed. `stop` ends it, and its flags hold no longer; `pause` ends it
 * for whoever starts it again.
 */
export type Plain = 'ping' | 'status' | 'stats' | 'order' | 'own' | 'stop' | 'pause'

export type JudgedAccess = 'read' | 'write' | 'list' | 'exec'

/** Something was not there, or could not be opened: was it the policy? If so that is recorded. */
export interface JudgeRequest {
  readonly want: 'judge'
  readonly access: JudgedAccess
  readonly path: string
}

/** May the sandbox connect there? A person is asked, and this long waited for. */
export interface AskRequest {
  readonly want: 'ask'
  /** `host:port`. */
  readonly target: string
  readonly waitMs: number
}

/** What was refused since a moment that the answer to `exec` told, in lines for a person. */
export interface RefusedRequest {
  readonly want: 'refused'
  readonly since: number
}

/** Ports that programs of the host shall reach, until the connection ends. */
export interface ForwardRequest {
  readonly want: 'forward'
  readonly ports: readonly PortPair[]
}

/** One answer, and no more. */
export type ShortRequest = { readonly want: Plain } | JudgeRequest | AskRequest | RefusedRequest

export type Request =
  | ShortRequest
  | ForwardRequest
  /** `timeoutMs`: null for a command that may take its time. */
  | { readonly want: 'exec'; readonly timeoutMs: number | null }

/** Of one process that talks to another about a failure: shown by the first as if it were its own. */
export interface ToldError {
  readonly code: ErrorCode
  readonly what: string
  readonly at: string | null
  readonly hint: string | null
}

export type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: ToldError }

export const CHANNEL = 1

const KIND = { request: 32, answer: 33 } as const
const PLAIN: readonly Plain[] = ['ping', 'status', 'stats', 'order', 'own', 'stop', 'pause']
const ACCESSES: readonly JudgedAccess[] = ['read', 'write', 'list', 'exec']
const HEADER = 9
const MAX_PATH = 4096
export const LONGEST_TARGET = 300
export const LONGEST_ASK_MS = 600_000
export const MOST_PORTS = 32
/** A path may be spelled with six bytes for each of its own. */
const MAX_REQUEST = 8 * MAX_PATH
/** The longest that a timer can be set to. */
const LONGEST_MS = 2 ** 31 - 1

const toBytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

export const encodeRequest = (request: Request): Uint8Array => encodeFrame(KIND.request, 0, toBytes(request))

export const encodeAnswer = (answer: Answer): Uint8Array => encodeFrame(KIND.answer, 0, toBytes(answer))

/** Takes the first frame off a stream; what follows it is somebody else's. */
class FirstFrame {
  readonly #kind: number
  readonly #most: number
  #bytes = new Uint8Array()

  constructor(kind: number, most: number) {
    this.#kind = kind
    this.#most = most
  }

  /** Undefined until it is complete. */
  push(bytes: Uint8Array): { readonly frame: Frame; readonly rest: Uint8Array } | undefined {
    this.#bytes = this.#bytes.length === 0 ? bytes.slice() : Buffer.concat([this.#bytes, bytes])
    if (this.#bytes.length < HEADER) return undefined
    const length = new DataView(this.#bytes.buffer, this.#bytes.byteOffset).getUint32(0)
    if (length > this.#most) throw protocolError(`a message of ${length} bytes`)
    if (this.#bytes.length < HEADER + length) return undefined
    const [frame] = new FrameDecoder().push(this.#bytes.subarray(0, HEADER + length))
    if (frame === undefined || frame.kind !== this.#kind || frame.channel !== 0)
      throw protocolError('a first message of another kind')
    return { frame, rest: this.#bytes.subarray(HEADER + length) }
  }
}

export class RequestReader {
  readonly #first = new FirstFrame(KIND.request, MAX_REQUEST)

  push(bytes: Uint8Array): { readonly request: Request; readonly rest: Uint8Array } | undefined {
    const found = this.#first.push(bytes)
    return found === undefined
      ? undefined
      : { request: readRequest(jsonOf(found.frame.payload)), rest: found.rest }
  }
}

export class AnswerReader {
  readonly #first = new FirstFrame(KIND.answer, 65_536)

  push(bytes: Uint8Array): { readonly answer: Answer; readonly rest: Uint8Array } | undefined {
    const found = this.#first.push(bytes)
    return found === undefined
      ? undefined
      : { answer: readAnswer(jsonOf(found.frame.payload)), rest: found.rest }
  }
}

function jsonOf(payload: Uint8Array): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch {
    throw protocolError('a text that is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw protocolError('a text of no kind')
  return value as Record<string, unknown>
}

function exactly(value: Record<string, unknown>, ...keys: readonly string[]): void {
  if (Object.keys(value).length !== keys.length || !keys.every(key => Object.hasOwn(value, key)))
    throw protocolError('a text with other keys')
}

function readRequest(value: Record<string, unknown>): Request {
  const { want } = value
  if (want === 'exec') {
    exactly(value, 'want', 'timeoutMs')
    const { timeoutMs } = value
    if (timeoutMs === null) return { want, timeoutMs }
    if (typeof timeoutMs !== 'number' || !Number.isInteger(timeoutMs))
      throw protocolError('a time that is none')
    if (timeoutMs < 1 || timeoutMs > LONGEST_MS) throw protocolError('a time out of bounds')
    return { want, timeoutMs }
  }
  if (want === 'judge') {
    exactly(value, 'want', 'access', 'path')
    const access = ACCESSES.find(one => one === value['access'])
    const { path } = value
    if (access === undefined) throw protocolError('an access that nobody knows')
    if (typeof path !== 'string' || path.length > MAX_PATH || path.includes('\0'))
      throw protocolError('a path that is none')
    return { want, access, path }
  }
  if (want === 'ask') {
    exactly(value, 'want', 'target', 'waitMs')
    const { target, waitMs } = value
    if (typeof target !== 'string' || target.length > LONGEST_TARGET)
      throw protocolError('a host that is none')
    if (typeof waitMs !== 'number' || !(waitMs >= 0) || waitMs > LONGEST_ASK_MS)
      throw protocolError('a time out of bounds')
    return { want, target, waitMs }
  }
  if (want === 'forward') {
    exactly(value, 'want', 'ports')
    const { ports } = value
    if (!Array.isArray(ports) || ports.length < 1 || ports.length > MOST_PORTS)
      throw protocolError('ports that are none')
    return { want, ports: ports.map(readPorts) }
  }
  if (want === 'refused') {
    exactly(value, 'want', 'since')
    const { since } = value
    if (!Number.isSafeInteger(since)) throw protocolError('a moment that is none')
    return { want, since: Number(since) }
  }
  exactly(value, 'want')
  const plain = PLAIN.find(one => one === want)
  if (plain !== undefined) return { want: plain }
  throw protocolError('a request for something unknown')
}

function readPorts(value: unknown): PortPair {
  if (typeof value !== 'object' || value === null) throw protocolError('ports that are none')
  const pair = value as Record<string, unknown>
  exactly(pair, 'guest', 'host')
  const { guest, host } = pair
  if (!isPort(guest) || !(host === 0 || isPort(host))) throw protocolError('a port that is none')
  return { guest, host }
}

const isPort = (value: unknown): value is Port =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535

function readAnswer(value: Record<string, unknown>): Answer {
  if (value['ok'] === true) {
    exactly(value, 'ok', 'value')
    return { ok: true, value: value['value'] }
  }
  exactly(value, 'ok', 'error')
  return { ok: false, error: readError(value['error']) }
}

export function tellError(thrown: unknown): ToldError {
  const error = knownError(thrown)
  if (error instanceof PenError)
    return {
      code: error.code,
      what: error.message,
      at: error.at === undefined ? null : showPlace(error.at),
      hint: error.hint ?? null,
    }
  const what = error instanceof Error ? error.message || error.name : String(error)
  const hint = 'this is a mistake in pen: repeat with PEN_DEBUG=1 and report what it prints'
  return { code: 'INTERNAL', what: what.split('\n', 1)[0] ?? '', at: null, hint }
}

export function readError(value: unknown): ToldError {
  const { code, what, at, hint } = (value ?? {}) as Record<string, unknown>
  const isText = (one: unknown) => one === null || typeof one === 'string'
  if (typeof code !== 'string' || !Object.hasOwn(ERROR_CODES, code))
    throw protocolError('a failure of no kind')
  if (typeof what !== 'string' || !isText(at) || !isText(hint)) throw protocolError('a failure without words')
  return { code: code as ErrorCode, what, at: at as string | null, hint: hint as string | null }
}

export const asPenError = ({ code, what, at, hint }: ToldError): PenError =>
  new PenError(code, { what, ...(at !== null && { at }), ...(hint !== null && { hint }) })

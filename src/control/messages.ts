/**
 * Requests to a supervisor, and its answers. Both ends are this user's pen, perhaps in two versions. A process that can open the
 * socket may send anything, so each end parses strictly and within bounds.
 *
 * A connection carries one request frame and one answer frame. After the answer to `exec`, the connection carries the messages of
 * protocol/exec-messages.ts on channel 1.
 */
import { ERROR_CODES, type ErrorCode, knownError, PenError, showPlace } from '../base/error.ts'
import type { PortPair } from '../gateway/forward/forward.ts'
import { encodeFrame, FrameDecoder, protocolError } from '../protocol/frame.ts'

/**
 * `order` returns the order of the start, for a restart. `attend` stays open until the sandbox has ended. `own` ties the sandbox to the connection: when the connection closes, the
 * sandbox ends. A program that started a sandbox uses it, because the program may be killed. `stop` ends the sandbox and drops its
 * flags. `pause` ends it and keeps them for the next start.
 */
export type PlainRequest = 'ping' | 'status' | 'stats' | 'order' | 'attend' | 'own' | 'stop' | 'pause'

export type JudgedAccess = 'read' | 'write' | 'list' | 'exec'

/** Asks whether the policy refuses an access that failed. If it does, the supervisor records a denial. */
interface JudgeRequest {
  readonly want: 'judge'
  readonly access: JudgedAccess
  readonly path: string
}

/** Asks the user to allow a connection, and waits for the answer. */
export interface AskRequest {
  readonly want: 'ask'
  /** `host:port`. */
  readonly target: string
  readonly waitMs: number
}

/** Asks for the refusals since a record number, as lines for a person. The answer to `exec` contains that number. */
interface RefusedRequest {
  readonly want: 'refused'
  readonly since: number
}

/** Forwards ports to the host until the connection closes. */
export interface ForwardRequest {
  readonly want: 'forward'
  readonly ports: readonly PortPair[]
}

/** A request with one answer and nothing after it. */
export type ShortRequest = { readonly want: PlainRequest } | JudgeRequest | AskRequest | RefusedRequest

export type Request =
  | ShortRequest
  | ForwardRequest
  /** `timeoutMs`: null means no timeout. */
  | { readonly want: 'exec'; readonly timeoutMs: number | null }

/** An error that crosses a process boundary. The receiver prints it as its own. */
export interface SerializedError {
  readonly code: ErrorCode
  readonly what: string
  readonly at: string | null
  readonly hint: string | null
}

export type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: SerializedError }

export const CHANNEL = 1

const KIND = { request: 32, answer: 33 } as const
const HEADER = 9
const MAX_PATH = 4096
export const MAX_TARGET_LENGTH = 300
export const MAX_ASK_MS = 600_000
const MAX_PORTS = 32
/** JSON may escape one byte of a path as six. */
const MAX_REQUEST = 8 * MAX_PATH
/** The longest delay that a timer accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1

const toBytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

export const encodeRequest = (request: Request): Uint8Array => encodeFrame(KIND.request, 0, toBytes(request))

export const encodeAnswer = (answer: Answer): Uint8Array => encodeFrame(KIND.answer, 0, toBytes(answer))

export interface FirstMessage<T> {
  readonly message: T
  /** The unread bytes after it. */
  readonly rest: Uint8Array
}

/** Reads the first frame of a stream. */
class FirstMessageReader<T> {
  readonly #kind: number
  readonly #maxLength: number
  readonly #read: (value: Record<string, unknown>) => T
  #bytes = new Uint8Array()

  constructor(kind: number, maxLength: number, read: (value: Record<string, unknown>) => T) {
    this.#kind = kind
    this.#maxLength = maxLength
    this.#read = read
  }

  /** Undefined until the frame is complete. */
  push(bytes: Uint8Array): FirstMessage<T> | undefined {
    this.#bytes = this.#bytes.length === 0 ? bytes.slice() : Buffer.concat([this.#bytes, bytes])
    if (this.#bytes.length < HEADER) return undefined
    const length = new DataView(this.#bytes.buffer, this.#bytes.byteOffset).getUint32(0)
    if (length > this.#maxLength) throw protocolError(`a message of ${length} bytes`)
    if (this.#bytes.length < HEADER + length) return undefined
    const [frame] = new FrameDecoder().push(this.#bytes.subarray(0, HEADER + length))
    if (frame === undefined || frame.kind !== this.#kind || frame.channel !== 0)
      throw protocolError('a first message of the wrong kind')
    return { message: this.#read(jsonOf(frame.payload)), rest: this.#bytes.subarray(HEADER + length) }
  }
}

export const requestReader = (): FirstMessageReader<Request> =>
  new FirstMessageReader(KIND.request, MAX_REQUEST, readRequest)

export const answerReader = (): FirstMessageReader<Answer> =>
  new FirstMessageReader(KIND.answer, 65_536, readAnswer)

function jsonOf(payload: Uint8Array): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch {
    throw protocolError('a message that is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw protocolError('a message that is not a JSON object')
  return value as Record<string, unknown>
}

function exactly(value: Record<string, unknown>, ...keys: readonly string[]): void {
  if (Object.keys(value).length !== keys.length || !keys.every(key => Object.hasOwn(value, key)))
    throw protocolError('a message with unexpected keys')
}

type Test = (value: unknown) => boolean

const isNumber = (value: unknown, least: number, most: number): boolean =>
  typeof value === 'number' && value >= least && value <= most

const isInteger = (value: unknown, least: number, most: number): boolean =>
  Number.isInteger(value) && isNumber(value, least, most)

const isText = (value: unknown, maxLength: number): boolean =>
  typeof value === 'string' && value.length <= maxLength && !value.includes('\0')

const isPort: Test = value => isInteger(value, 1, 65_535)

const isPortPair: Test = value => {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false
  const { guest, host } = value as Record<string, unknown>
  return isPort(guest) && (host === 0 || isPort(host))
}

/** Every request, with a test for each of its other keys. */
const REQUESTS: Readonly<Record<Request['want'], Readonly<Record<string, Test>>>> = {
  ping: {},
  status: {},
  stats: {},
  order: {},
  attend: {},
  own: {},
  stop: {},
  pause: {},
  exec: { timeoutMs: value => value === null || isInteger(value, 1, MAX_TIMER_MS) },
  judge: {
    access: value => ['read', 'write', 'list', 'exec'].some(access => access === value),
    path: value => isText(value, MAX_PATH),
  },
  ask: {
    target: value => isText(value, MAX_TARGET_LENGTH),
    waitMs: value => isNumber(value, 0, MAX_ASK_MS),
  },
  refused: { since: value => Number.isSafeInteger(value) },
  forward: {
    ports: value => Array.isArray(value) && isInteger(value.length, 1, MAX_PORTS) && value.every(isPortPair),
  },
}

function readRequest(value: Record<string, unknown>): Request {
  const { want } = value
  if (typeof want !== 'string' || !Object.hasOwn(REQUESTS, want)) throw protocolError('an unknown request')
  const tests = REQUESTS[want as Request['want']]
  exactly(value, 'want', ...Object.keys(tests))
  for (const [key, isValid] of Object.entries(tests))
    if (!isValid(value[key])) throw protocolError(`an invalid ${key}`)
  return value as Request
}

function readAnswer(value: Record<string, unknown>): Answer {
  if (value['ok'] === true) {
    exactly(value, 'ok', 'value')
    return { ok: true, value: value['value'] }
  }
  exactly(value, 'ok', 'error')
  return { ok: false, error: readError(value['error']) }
}

export function takeValue(answer: Answer): unknown {
  if (answer.ok) return answer.value
  throw asPenError(answer.error)
}

export function serializeError(thrown: unknown): SerializedError {
  const error = knownError(thrown)
  if (error instanceof PenError)
    return {
      code: error.code,
      what: error.message,
      at: error.at === undefined ? null : showPlace(error.at),
      hint: error.hint ?? null,
    }
  const what = error instanceof Error ? error.message || error.name : String(error)
  const hint = 'this is a bug in pen; run again with PEN_DEBUG=1 and report the output'
  return { code: 'INTERNAL', what: what.split('\n', 1)[0] ?? '', at: null, hint }
}

export function readError(value: unknown): SerializedError {
  const { code, what, at, hint } = (value ?? {}) as Record<string, unknown>
  const isText = (one: unknown) => one === null || typeof one === 'string'
  if (typeof code !== 'string' || !Object.hasOwn(ERROR_CODES, code))
    throw protocolError('an unknown error code')
  if (typeof what !== 'string' || !isText(at) || !isText(hint))
    throw protocolError('an error without a message')
  return { code: code as ErrorCode, what, at: at as string | null, hint: hint as string | null }
}

export const asPenError = ({ code, what, at, hint }: SerializedError): PenError =>
  new PenError(code, { what, ...(at !== null && { at }), ...(hint !== null && { hint }) })

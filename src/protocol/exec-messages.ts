/**
 * The messages of an execution. Orders go towards the sandbox: client → supervisor → exec daemon. Reports come back and
 * are hostile, so they hold bytes, small numbers and one short text.
 */
import {
  type DaemonSetup,
  type ExecOrder,
  readOrder,
  readSetup,
  writeOrder,
  writeSetup,
} from './exec-order.ts'
import { encodeFrame, type Frame, FrameDecoder, protocolError } from './frame.ts'

/**
 * A channel is one execution. The sender numbers channels, and never reuses one. The first two kinds concern all
 * executions, on channel 0.
 */
export type Order =
  | { readonly kind: 'configure'; readonly setup: DaemonSetup }
  | { readonly kind: 'exec'; readonly channel: number; readonly order: ExecOrder }
  | { readonly kind: 'stdin'; readonly channel: number; readonly bytes: Uint8Array }
  | { readonly kind: 'stdin-end'; readonly channel: number }
  | { readonly kind: 'resize'; readonly channel: number; readonly columns: number; readonly rows: number }
  /** To the command's process group. On a terminal, SIGHUP is a hang-up. */
  | { readonly kind: 'signal'; readonly channel: number; readonly signal: number }
  | { readonly kind: 'window'; readonly channel: number; readonly stream: Stream; readonly bytes: number }
  /** SIGKILL for every process of this execution. */
  | { readonly kind: 'end'; readonly channel: number }

export type Report =
  /** The exec daemon is confined, and accepts orders. */
  | { readonly kind: 'ready' }
  /** Commands have reached the process limit. Sent once. */
  | { readonly kind: 'full' }
  | { readonly kind: 'started'; readonly channel: number }
  | { readonly kind: Stream; readonly channel: number; readonly bytes: Uint8Array }
  | { readonly kind: 'window'; readonly channel: number; readonly bytes: number }
  /** After the last byte of output. The channel ends. */
  | {
      readonly kind: 'exit'
      readonly channel: number
      readonly how: 'exit' | 'signal'
      readonly value: number
    }
  /** The command did not start. The channel ends. `errno` is a name. */
  | { readonly kind: 'failed'; readonly channel: number; readonly errno: string; readonly reason: string }

export type Stream = 'stdout' | 'stderr'

const KIND = {
  configure: 1,
  exec: 2,
  stdin: 3,
  'stdin-end': 4,
  resize: 5,
  signal: 6,
  window: 7,
  end: 8,
  ready: 16,
  started: 17,
  stdout: 18,
  stderr: 19,
  exit: 20,
  failed: 21,
  full: 22,
} as const

const LONG = new Set([KIND.configure, KIND.exec])
const STREAMS: readonly Stream[] = ['stdout', 'stderr']
const HOW = ['exit', 'signal'] as const
const MAX_REASON = 400

export function encodeOrder(order: Order): Uint8Array {
  const kind = KIND[order.kind]
  switch (order.kind) {
    case 'configure':
      return encodeFrame(kind, 0, writeSetup(order.setup))
    case 'exec':
      return encodeFrame(kind, order.channel, writeOrder(order.order))
    case 'stdin':
      return encodeFrame(kind, order.channel, order.bytes)
    case 'resize':
      return encodeFrame(kind, order.channel, pack(4, order.columns * 0x1_0000 + order.rows))
    case 'signal':
      return encodeFrame(kind, order.channel, pack(1, order.signal))
    case 'window':
      return encodeFrame(kind, order.channel, pack(5, STREAMS.indexOf(order.stream) * 2 ** 32 + order.bytes))
    case 'stdin-end':
    case 'end':
      return encodeFrame(kind, order.channel)
  }
}

export function encodeReport(report: Report): Uint8Array {
  const kind = KIND[report.kind]
  switch (report.kind) {
    case 'ready':
    case 'full':
      return encodeFrame(kind, 0)
    case 'started':
      return encodeFrame(kind, report.channel)
    case 'stdout':
    case 'stderr':
      return encodeFrame(kind, report.channel, report.bytes)
    case 'window':
      return encodeFrame(kind, report.channel, pack(4, report.bytes))
    case 'exit':
      return encodeFrame(kind, report.channel, pack(2, HOW.indexOf(report.how) * 0x100 + report.value))
    case 'failed': {
      const text = `${report.errno} ${report.reason}`.slice(0, MAX_REASON)
      return encodeFrame(kind, report.channel, new TextEncoder().encode(text))
    }
  }
}

/** Reads orders: in the exec daemon, and in the supervisor from a client. */
export class OrderReader {
  readonly #frames = new FrameDecoder(LONG)

  push(bytes: Uint8Array): Iterable<Order> {
    return each(this.#frames.push(bytes), readOrderFrame)
  }
}

/** Reads reports: in the supervisor from the exec daemon, and in a client from the supervisor. */
export class ReportReader {
  readonly #frames = new FrameDecoder()

  push(bytes: Uint8Array): Iterable<Report> {
    return each(this.#frames.push(bytes), readReportFrame)
  }
}

function* each<T>(frames: Iterable<Frame>, read: (frame: Frame) => T): Iterable<T> {
  for (const frame of frames) yield read(frame)
}

function readOrderFrame({ kind, channel, payload }: Frame): Order {
  if ((channel === 0) !== (kind === KIND.configure)) throw protocolError('an order without its channel')
  switch (kind) {
    case KIND.configure:
      return { kind: 'configure', setup: readSetup(payload) }
    case KIND.exec:
      return { kind: 'exec', channel, order: readOrder(payload) }
    case KIND.stdin:
      return { kind: 'stdin', channel, bytes: filled(payload) }
    case KIND['stdin-end']:
      unpack(payload, 0)
      return { kind: 'stdin-end', channel }
    case KIND.resize: {
      const both = unpack(payload, 4)
      return { kind: 'resize', channel, columns: both >>> 16, rows: both & 0xffff }
    }
    case KIND.signal:
      return { kind: 'signal', channel, signal: among(unpack(payload, 1), 1, 31) }
    case KIND.window: {
      const both = unpack(payload, 5)
      const stream = STREAMS[Math.floor(both / 2 ** 32)]
      if (stream === undefined) throw protocolError('room for an unknown stream')
      return { kind: 'window', channel, stream, bytes: both % 2 ** 32 }
    }
    case KIND.end:
      unpack(payload, 0)
      return { kind: 'end', channel }
    default:
      throw protocolError(`an order of kind ${kind}`)
  }
}

function readReportFrame({ kind, channel, payload }: Frame): Report {
  if ((channel === 0) !== (kind === KIND.ready || kind === KIND.full))
    throw protocolError('a report without its channel')
  switch (kind) {
    case KIND.ready:
      unpack(payload, 0)
      return { kind: 'ready' }
    case KIND.full:
      unpack(payload, 0)
      return { kind: 'full' }
    case KIND.started:
      unpack(payload, 0)
      return { kind: 'started', channel }
    case KIND.stdout:
      return { kind: 'stdout', channel, bytes: filled(payload) }
    case KIND.stderr:
      return { kind: 'stderr', channel, bytes: filled(payload) }
    case KIND.window:
      return { kind: 'window', channel, bytes: unpack(payload, 4) }
    case KIND.exit: {
      const both = unpack(payload, 2)
      const how = HOW[both >>> 8]
      if (how === undefined) throw protocolError('an unknown kind of end')
      return { kind: 'exit', channel, how, value: how === 'signal' ? among(both & 0xff, 1, 64) : both & 0xff }
    }
    case KIND.failed:
      return { kind: 'failed', channel, ...readFailure(payload) }
    default:
      throw protocolError(`a report of kind ${kind}`)
  }
}

/** The reason is hostile text. The code that prints it must escape it. */
function readFailure(payload: Uint8Array): { errno: string; reason: string } {
  const text = new TextDecoder().decode(payload)
  const [, errno, reason] = /^(E[A-Z0-9]{1,15}) (.*)$/s.exec(text) ?? []
  if (errno === undefined || reason === undefined || text.length > MAX_REASON)
    throw protocolError('a failure without its reason')
  return { errno, reason }
}

function filled(payload: Uint8Array): Uint8Array {
  if (payload.length === 0) throw protocolError('an empty piece of a stream')
  return payload
}

function among(value: number, least: number, most: number): number {
  if (value < least || value > most) throw protocolError('a number out of bounds')
  return value
}

function pack(length: number, value: number): Uint8Array {
  const bytes = Buffer.alloc(length)
  bytes.writeUIntBE(value, 0, length)
  return bytes
}

function unpack(payload: Uint8Array, length: number): number {
  if (payload.length !== length) throw protocolError('a payload of another length')
  return length === 0 ? 0 : Buffer.from(payload.buffer, payload.byteOffset, length).readUIntBE(0, length)
}

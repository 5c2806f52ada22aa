/**
 * The messages of an execution. Orders go towards the sandbox: client → supervisor → exec daemon. Reports come back and
 * are hostile, so they hold bytes, small numbers and one short text. A channel is one execution.
 */
import { readOrder, readSetup, writeOrder, writeSetup } from './exec-order.ts'
import { between, oneOf } from './fields.ts'
import { protocolError } from './frame.ts'
import {
  count,
  data,
  encoderOf,
  field,
  type MessageOf,
  nothing,
  type Payload,
  pack,
  TableReader,
  unpack,
} from './messages.ts'

export type Stream = 'stdout' | 'stderr'

const STREAMS: readonly Stream[] = ['stdout', 'stderr']
const HOW = ['exit', 'signal'] as const
const MAX_REASON = 400

const size: Payload<{ readonly columns: number; readonly rows: number }> = {
  write: ({ columns, rows }) => pack(4, columns * 0x1_0000 + rows),
  read: payload => {
    const both = unpack(payload, 4)
    return { columns: both >>> 16, rows: both & 0xffff }
  },
}

const signal: Payload<{ readonly signal: number }> = {
  write: ({ signal }) => pack(1, signal),
  read: payload => ({ signal: between(1, 31)(unpack(payload, 1)) }),
}

const port: Payload<{ readonly port: number }> = {
  write: ({ port }) => pack(2, port),
  read: payload => ({ port: between(1, 0xffff)(unpack(payload, 2)) }),
}

const room: Payload<{ readonly stream: Stream; readonly bytes: number }> = {
  write: ({ stream, bytes }) => pack(5, STREAMS.indexOf(stream) * 2 ** 32 + bytes),
  read: payload => {
    const both = unpack(payload, 5)
    return { stream: oneOf(...STREAMS)(STREAMS[Math.floor(both / 2 ** 32)]), bytes: both % 2 ** 32 }
  },
}

const ending: Payload<{ readonly how: 'exit' | 'signal'; readonly value: number }> = {
  write: ({ how, value }) => pack(2, HOW.indexOf(how) * 0x100 + value),
  read: payload => {
    const both = unpack(payload, 2)
    const how = oneOf(...HOW)(HOW[both >>> 8])
    const value = both & 0xff
    return { how, value: how === 'signal' ? between(1, 64)(value) : value }
  },
}

/** The reason is hostile text. The code that prints it must escape it. */
const failure: Payload<{ readonly errno: string; readonly reason: string }> = {
  write: ({ errno, reason }) => new TextEncoder().encode(`${errno} ${reason}`.slice(0, MAX_REASON)),
  read: payload => {
    const text = new TextDecoder().decode(payload)
    const [, errno, reason] = /^(E[A-Z0-9]{1,15}) (.*)$/s.exec(text) ?? []
    if (errno === undefined || reason === undefined || text.length > MAX_REASON)
      throw protocolError('a failure without its reason')
    return { errno, reason }
  },
}

const ORDERS = {
  configure: { number: 1, isCommon: true, isLong: true, ...field('setup', readSetup, writeSetup) },
  exec: { number: 2, isLong: true, ...field('order', readOrder, writeOrder) },
  stdin: { number: 3, ...data },
  'stdin-end': { number: 4, ...nothing },
  resize: { number: 5, ...size },
  /** To the command's process group. On a terminal, SIGHUP is a hang-up. */
  signal: { number: 6, ...signal },
  window: { number: 7, ...room },
  /** SIGKILL for every process of this execution. */
  end: { number: 8, ...nothing },
  /**
   * A channel without a command: a connection to this port of the sandbox's loopback. Its bytes are the channel's stdin
   * and stdout. Only the supervisor orders it.
   */
  connect: { number: 9, ...port },
  /** The same, with the next client of the file broker. The channel is started when the client has connected. */
  accept: { number: 10, ...nothing },
} as const
export type Order = MessageOf<typeof ORDERS>

const REPORTS = {
  /** The exec daemon is confined, and accepts orders. */
  ready: { number: 16, isCommon: true, ...nothing },
  /** Commands have reached the process limit. Sent once. */
  full: { number: 22, isCommon: true, ...nothing },
  started: { number: 17, ...nothing },
  stdout: { number: 18, ...data },
  stderr: { number: 19, ...data },
  window: { number: 7, ...count(4) },
  /** No more bytes come from a connection. More may be sent. */
  'stdout-end': { number: 23, ...nothing },
  /** After the last byte of output. The channel ends. */
  exit: { number: 20, ...ending },
  /** The command did not start. The channel ends. `errno` is a name. */
  failed: { number: 21, ...failure },
} as const
export type Report = MessageOf<typeof REPORTS>

export const encodeOrder = encoderOf(ORDERS)
export const encodeReport = encoderOf(REPORTS)

/** Reads orders: in the exec daemon, and in the supervisor from a client. */
export class OrderReader extends TableReader<typeof ORDERS> {
  constructor() {
    super(ORDERS)
  }
}

/** Reads reports: in the supervisor from the exec daemon, and in a client from the supervisor. */
export class ReportReader extends TableReader<typeof REPORTS> {
  constructor() {
    super(REPORTS)
  }
}

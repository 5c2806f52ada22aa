/**
 * Netlink: requests to the kernel and its answers, as messages with attributes that may be nested. A netlink socket
 * belongs to the network namespace in which it is opened.
 */
import { CallFailed } from './call-failed.ts'
import { AF, MSG, SOCK } from './socket.ts'
import { cString, succeeded, tryCall } from './system-call.ts'

export const NETLINK = { route: 0, sockDiag: 4, netfilter: 12 } as const

export const NLM_F = {
  request: 0x1,
  ack: 0x4,
  dumpInterrupted: 0x10,
  exclusive: 0x200,
  dump: 0x300,
  create: 0x400,
  append: 0x800,
} as const

const NLMSG_ERROR = 2
const NLMSG_DONE = 3
/** Size of `struct nlmsghdr`. */
const HEADER = 16
const NESTED = 0x8000
/** The low bits of an attribute's type. The others are flags. */
const TYPE_MASK = 0x3fff

/** Messages and attributes start at multiples of four. Their lengths exclude the padding. */
const aligned = (at: number): number => (at + 3) & ~3

/** It runs during a start, so it writes each byte once and fills in the lengths afterwards. */
export class MessageWriter {
  readonly #bytes: Uint8Array<ArrayBuffer>
  readonly #view: DataView
  #at = 0

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(capacity)
    this.#view = new DataView(this.#bytes.buffer)
  }

  message(type: number, flags: number, sequence: number, body: () => void): void {
    const start = this.#at
    this.#view.setUint16(start + 4, type, true)
    this.#view.setUint16(start + 6, flags, true)
    this.#view.setUint32(start + 8, sequence, true)
    this.#at = start + HEADER
    body()
    this.#view.setUint32(start, this.#at - start, true)
    this.#at = aligned(this.#at)
  }

  /** Bytes without an attribute header, such as the struct that a message begins with. */
  raw(bytes: ArrayLike<number>): void {
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.length
  }

  attribute(type: number, inside: () => void): void {
    const start = this.#at
    this.#view.setUint16(start + 2, type, true)
    this.#at = start + 4
    inside()
    this.#view.setUint16(start, this.#at - start, true)
    this.#at = aligned(this.#at)
  }

  bytes(type: number, value: ArrayLike<number>): void {
    this.attribute(type, () => this.raw(value))
  }

  nested(type: number, inside: () => void): void {
    this.attribute(NESTED | type, inside)
  }

  text(type: number, value: string): void {
    this.bytes(type, cString(value))
  }

  /** 32 bits in network byte order, as nf_tables expects them. */
  number(type: number, value: number): void {
    this.attribute(type, () => {
      this.#view.setUint32(this.#at, value)
      this.#at += 4
    })
  }

  written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#at)
  }
}

export interface NetlinkMessage {
  readonly type: number
  readonly flags: number
  readonly sequence: number
  readonly body: Uint8Array
}

/** Throws when a message is cut off. */
export function* readMessages(bytes: Uint8Array): Generator<NetlinkMessage> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at + HEADER <= bytes.length; ) {
    const size = view.getUint32(at, true)
    if (size < HEADER || at + size > bytes.length) throw new TypeError('a netlink message is cut off')
    yield {
      type: view.getUint16(at + 4, true),
      flags: view.getUint16(at + 6, true),
      sequence: view.getUint32(at + 8, true),
      body: bytes.subarray(at + HEADER, at + size),
    }
    at += aligned(size)
  }
}

/** Throws when an attribute is cut off. */
export function* readAttributes(bytes: Uint8Array): Generator<readonly [type: number, value: Uint8Array]> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at + 4 <= bytes.length; ) {
    const size = view.getUint16(at, true)
    if (size < 4 || at + size > bytes.length) throw new TypeError('a netlink attribute is cut off')
    yield [view.getUint16(at + 2, true) & TYPE_MASK, bytes.subarray(at + 4, at + size)]
    at += aligned(size)
  }
}

export const isLast = ({ type }: NetlinkMessage): boolean => type === NLMSG_DONE

/** The errno of an error message: 0 acknowledges a request. Undefined for every other message. */
export function errnoIn({ type, body }: NetlinkMessage): number | undefined {
  if (type !== NLMSG_ERROR || body.length < 4) return undefined
  return 0 - new DataView(body.buffer, body.byteOffset).getInt32(0, true)
}

export const openNetlink = (protocol: number): number =>
  succeeded('open netlink', tryCall('socket', AF.netlink, SOCK.raw | SOCK.cloexec, protocol))

/** Sends a request and waits for its acknowledgement. The kernel answers before `sendto` returns. */
export function request(what: string, socket: number, message: Uint8Array): void {
  succeeded(what, tryCall('sendto', socket, message, message.length, 0))
  const [reply] = readMessages(receive(what, socket, new Uint8Array(4096)))
  const errno = reply === undefined ? undefined : errnoIn(reply)
  if (errno !== 0) throw new CallFailed(what, errno ?? 0)
}

/** Sends a dump request and yields its answers up to the last message. A body is valid until the next step. */
export function* dump(what: string, socket: number, message: Uint8Array): Generator<NetlinkMessage> {
  succeeded(what, tryCall('sendto', socket, message, message.length, 0))
  const buffer = new Uint8Array(65_536)
  for (;;)
    for (const answer of readMessages(receive(what, socket, buffer))) {
      const errno = errnoIn(answer)
      if (errno !== undefined) throw new CallFailed(what, errno)
      yield answer
      if (isLast(answer)) return
    }
}

export function receive(what: string, socket: number, buffer: Uint8Array): Uint8Array {
  const size = succeeded(what, tryCall('recvfrom', socket, buffer, buffer.length, MSG.dontWait))
  return buffer.subarray(0, size)
}

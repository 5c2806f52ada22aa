/** Messages to the kernel (netlink): headers, and attributes that may hold attributes. Whoever opens a socket speaks of the namespace it is in then. */
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { AF, SOCK } from '../../base/kernel/socket.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'

export const NETLINK = { route: 0, netfilter: 12 } as const

export const NLM_F = {
  request: 0x1,
  ack: 0x4,
  exclusive: 0x200,
  dump: 0x300,
  create: 0x400,
  append: 0x800,
} as const

/** Of `struct nlmsghdr`. */
export const HEADER = 16
export const NLMSG_ERROR = 2
export const MSG_DONTWAIT = 0x40
const NESTED = 0x8000
/** Attributes and messages begin at multiples of four, which their lengths do not count. */
const aligned = (at: number): number => (at + 3) & ~3

const ENCODER = new TextEncoder()

/** Writes each byte once and fills lengths in afterwards: it runs once, in the way of a start. */
export class MessageWriter {
  readonly #bytes: Uint8Array<ArrayBuffer>
  readonly #view: DataView
  #at = 0

  constructor(most: number) {
    this.#bytes = new Uint8Array(most)
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

  /** Without a header of their own: what a message begins with. */
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
    this.bytes(type, ENCODER.encode(`${value}\0`))
  }

  /** In the order of the network, as the packet filter has them. */
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

export const openNetlink = (protocol: number): number =>
  succeeded('open netlink', tryCall('socket', AF.netlink, SOCK.raw | SOCK.cloexec, protocol))

/** Has a request carried out, which the kernel does before it takes the next. */
export function request(what: string, socket: number, message: Uint8Array): void {
  succeeded(what, tryCall('sendto', socket, message, message.length, 0))
  const reply = new Uint8Array(4096)
  const size = succeeded(what, tryCall('recvfrom', socket, reply, reply.length, MSG_DONTWAIT))
  const errno = answerOf(reply.subarray(0, size))
  if (errno !== 0) throw new CallFailed(what, errno ?? 0)
}

/** What the kernel says at the end of a request: 0 when all went well, else errno. Undefined for any other message. */
function answerOf(bytes: Uint8Array): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (bytes.length < HEADER + 4 || view.getUint16(4, true) !== NLMSG_ERROR) return undefined
  return 0 - view.getInt32(HEADER, true)
}

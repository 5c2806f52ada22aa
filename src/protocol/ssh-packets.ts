/**
 * Packets of SSH's file transfer protocol (version 3, as OpenSSH speaks it) and of its agent: a length, a kind, and fields.
 * Names are bytes: a file name need not be UTF-8.
 */
import { protocolError } from './frame.ts'

/** OpenSSH's bound for one packet. */
export const MAX_PACKET = 256 * 1024
/** The most bytes of a file in one packet. */
export const MAX_DATA = MAX_PACKET - 1024

const SIZE = 1
const OWNER = 2
const PERMISSIONS = 4
const TIMES = 8
const EXTENDED = 0x8000_0000

/** What a client sets, and what a server reports. */
export interface Attributes {
  readonly size?: bigint
  readonly owner?: { readonly uid: number; readonly gid: number }
  readonly mode?: number
  /** In seconds. */
  readonly times?: { readonly accessed: number; readonly modified: number }
}

/** Reads the fields of one packet in order. Throws where a field is longer than its packet. */
export class PacketReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  byte(): number {
    return this.#take(1).readUInt8()
  }

  number(): number {
    return this.#take(4).readUInt32BE()
  }

  long(): bigint {
    return this.#take(8).readBigUInt64BE()
  }

  bytes(): Buffer {
    return this.#take(this.number())
  }

  text(): string {
    return this.bytes().toString('latin1')
  }

  /** All that is left. */
  rest(): Buffer {
    return this.#take(this.#bytes.length - this.#at)
  }

  attributes(): Attributes {
    const flags = this.number()
    const has = (flag: number): boolean => (flags & flag) !== 0
    const attributes = {
      ...(has(SIZE) && { size: this.long() }),
      ...(has(OWNER) && { owner: { uid: this.number(), gid: this.number() } }),
      ...(has(PERMISSIONS) && { mode: this.number() }),
      ...(has(TIMES) && { times: { accessed: this.number(), modified: this.number() } }),
    }
    // Pairs of a name and a value, which nothing here knows.
    if (has(EXTENDED)) for (let left = 2 * this.number(); left > 0; left--) this.bytes()
    return attributes
  }

  #take(length: number): Buffer {
    const end = this.#at + length
    if (end > this.#bytes.length) throw protocolError('a field that is longer than its packet')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }
}

const byte = (value: number): Buffer => Buffer.of(value)

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

export function long(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, value))
  return bytes
}

export function text(value: Uint8Array | string): Buffer {
  const bytes = Buffer.from(value as string)
  return Buffer.concat([number(bytes.length), bytes])
}

export const attributes = ({ size, owner, mode, times }: Attributes): Buffer =>
  Buffer.concat([
    number(
      (size === undefined ? 0 : SIZE) |
        (owner === undefined ? 0 : OWNER) |
        (mode === undefined ? 0 : PERMISSIONS) |
        (times === undefined ? 0 : TIMES),
    ),
    ...(size === undefined ? [] : [long(size)]),
    ...(owner === undefined ? [] : [number(owner.uid), number(owner.gid)]),
    ...(mode === undefined ? [] : [number(mode)]),
    ...(times === undefined ? [] : [number(times.accessed), number(times.modified)]),
  ])

/** A packet with its length. */
export function packet(kind: number, ...fields: readonly Buffer[]): Buffer {
  const body = Buffer.concat([byte(kind), ...fields])
  return Buffer.concat([number(body.length), body])
}

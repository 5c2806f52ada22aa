/**
 * Tables of messages. An entry has the kind of the frame and its payload. A channel is one request or execution. Its
 * sender numbers channels from 1, and never reuses one.
 */
import { type Check, fromText, toText } from './fields.ts'
import { encodeFrame, type Frame, FrameDecoder, protocolError } from './frame.ts'

/** How the fields of a message are written and read. `read` checks every value. */
export interface Payload<F> {
  write(fields: F): Uint8Array
  read(payload: Uint8Array): F
}

interface Entry<F> extends Payload<F> {
  readonly number: number
  /** The message concerns all channels, and has channel 0. */
  readonly isCommon?: true
  /** The message may be longer than one frame. */
  readonly isLong?: true
}

type Table = Readonly<Record<string, Entry<object>>>

export type MessageOf<T> = {
  [K in keyof T]: Readonly<
    { kind: K } & (T[K] extends { isCommon: true } ? unknown : { channel: number }) &
      (T[K] extends Payload<infer F> ? F : never)
  >
}[keyof T]

export const encoderOf =
  <T extends Table>(table: T) =>
  (message: MessageOf<T>): Uint8Array => {
    const { kind, channel = 0 } = message as { kind: string; channel?: number }
    const entry = table[kind]
    if (entry === undefined) throw protocolError(`a message of kind ${kind}`)
    return encodeFrame(entry.number, channel, entry.write(message))
  }

export class TableReader<T extends Table> {
  readonly #kinds: ReadonlyMap<number, readonly [string, Entry<object>]>
  readonly #frames: FrameDecoder

  constructor(table: T) {
    const entries = Object.entries(table)
    this.#kinds = new Map(entries.map(([kind, entry]) => [entry.number, [kind, entry]]))
    this.#frames = new FrameDecoder(
      new Set(entries.flatMap(([, { number, isLong }]) => (isLong === true ? [number] : []))),
    )
  }

  *push(bytes: Uint8Array): Iterable<MessageOf<T>> {
    for (const frame of this.#frames.push(bytes)) yield this.#read(frame)
  }

  #read({ kind: number, channel, payload }: Frame): MessageOf<T> {
    const [kind, entry] = this.#kinds.get(number) ?? []
    if (entry === undefined) throw protocolError(`a message of kind ${number}`)
    if ((channel === 0) !== (entry.isCommon === true)) throw protocolError('a message without its channel')
    const fields = entry.read(payload)
    return (channel === 0 ? { kind, ...fields } : { kind, channel, ...fields }) as MessageOf<T>
  }
}

export const nothing: Payload<object> = {
  write: () => new Uint8Array(),
  read: payload => {
    unpack(payload, 0)
    return {}
  },
}

/** A piece of a stream. */
export const data: Payload<{ readonly bytes: Uint8Array }> = {
  write: ({ bytes }) => bytes,
  read: bytes => {
    if (bytes.length === 0) throw protocolError('an empty piece of a stream')
    return { bytes }
  },
}

/** A number of bytes. */
export const count = (length: number): Payload<{ readonly bytes: number }> => ({
  write: ({ bytes }) => pack(length, bytes),
  read: payload => ({ bytes: unpack(payload, length) }),
})

/** One field with a payload of its own. */
export const field = <N extends string, T>(
  name: N,
  read: (payload: Uint8Array) => T,
  write: (value: T) => Uint8Array,
): Payload<Readonly<Record<N, T>>> => ({
  write: fields => write(fields[name]),
  read: payload => ({ [name]: read(payload) }) as Record<N, T>,
})

/** One field, as JSON. */
export const json = <N extends string, T extends object>(name: N, check: Check<T>) =>
  field(name, payload => fromText(payload, check), toText<T>)

export function pack(length: number, value: number): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes.subarray(8 - length)
}

export function unpack(payload: Uint8Array, length: number): number {
  if (payload.length !== length) throw protocolError('a payload of another length')
  const bytes = Buffer.alloc(8)
  bytes.set(payload, 8 - length)
  const value = Number(bytes.readBigUInt64BE())
  if (!Number.isSafeInteger(value)) throw protocolError('a number out of bounds')
  return value
}

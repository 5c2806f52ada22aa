/**
 * The checked parts of a message. Each throws on an invalid value. The stream is then closed, and nothing of the
 * message was done.
 */
import { protocolError } from './frame.ts'

export type Values = Readonly<Record<string, unknown>>

export const toBytes = (value: object): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

export function object(payload: Uint8Array): Values {
  try {
    return record(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload)))
  } catch {
    throw protocolError('an invalid text')
  }
}

export function record(value: unknown): Values {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw protocolError('no object')
  return value as Values
}

export function keys(value: Values, wanted: readonly string[]): Values {
  const own = Object.keys(value)
  if (own.length !== wanted.length || !wanted.every(key => Object.hasOwn(value, key)))
    throw protocolError('unexpected fields')
  return value
}

export function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || value.length > 4096) throw protocolError('an invalid list')
  return value
}

export function text(value: unknown, longest: number): string {
  if (typeof value !== 'string' || value.length > longest) throw protocolError('an invalid word')
  return value
}

export function truth(value: unknown): boolean {
  if (typeof value !== 'boolean') throw protocolError('an invalid boolean')
  return value
}

export function among<const T extends string>(value: unknown, words: readonly T[]): T {
  const found = words.find(word => word === value)
  if (found === undefined) throw protocolError('an unknown word')
  return found
}

export function whole(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw protocolError('a number out of bounds')
  return value
}

export function filled(payload: Uint8Array): Uint8Array {
  if (payload.length === 0) throw protocolError('an empty piece of a stream')
  return payload
}

export function pack(value: number): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}

export function unpack(payload: Uint8Array): number {
  if (payload.length !== 8) throw protocolError('a payload of another length')
  const value = Buffer.from(payload.buffer, payload.byteOffset, 8).readBigUInt64BE()
  return whole(Number(value))
}

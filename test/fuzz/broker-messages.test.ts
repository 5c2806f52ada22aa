import { PenError } from '../../src/base/error.ts'
import { encodeRequest, RequestReader } from '../../src/protocol/broker-messages.ts'
import { fuzz } from './fuzz.ts'

/** Everything that was read until the end or the first refusal. */
function readAll(pieces: readonly Uint8Array[]): string {
  const reader = new RequestReader()
  const seen: unknown[] = []
  try {
    for (const piece of pieces) for (const ask of reader.push(piece)) seen.push(structuredClone(ask))
  } catch (error) {
    if (!(error instanceof PenError) || error.code !== 'WIRE') throw error
    seen.push('refused')
  }
  return JSON.stringify(seen)
}

fuzz('requests to the file broker read the same however they are split, or are refused', {
  seeds: [
    encodeRequest({ kind: 'request', channel: 1, request: { op: 'grants' } }),
    encodeRequest({ kind: 'request', channel: 2, request: { op: 'read', path: '/a/b', from: 0, length: 9 } }),
    Buffer.concat([
      encodeRequest({ kind: 'request', channel: 3, request: { op: 'write', path: '/a', executable: true } }),
      encodeRequest({ kind: 'data', channel: 3, bytes: Buffer.from('content') }),
      encodeRequest({ kind: 'window', channel: 3, bytes: 65_536 }),
      encodeRequest({ kind: 'complete', channel: 3 }),
      encodeRequest({ kind: 'cancel', channel: 3 }),
    ]),
  ],
  dictionary: [
    '\0\0\0\0',
    '\0\x01\0\0',
    '\xff\xff\xff\xff',
    '"op":"list"',
    '"from":0',
    'null',
    '..',
    '\\u0000',
    '1e9',
  ],
  maxBytes: 512,
  run: input => {
    const whole = readAll([input])
    const middle = input.length >> 1
    if (readAll([input.subarray(0, middle), input.subarray(middle)]) !== whole)
      throw new Error('reads differently in halves')
    if (readAll(Array.from(input, (_, i) => input.subarray(i, i + 1))) !== whole)
      throw new Error('reads differently byte by byte')
  },
})

import { PenError } from '../../src/base/error.ts'
import { encodeOrder, encodeReport, OrderReader, ReportReader } from '../../src/protocol/exec-messages.ts'
import { MAX_PAYLOAD } from '../../src/protocol/frame.ts'
import { fuzz } from './fuzz.ts'

interface Reader<T> {
  push(bytes: Uint8Array): Iterable<T>
}

/** Everything that was read until the end or the first refusal, and whether there was one. */
function readAll<T>(reader: Reader<T>, pieces: readonly Uint8Array[]): string {
  const seen: unknown[] = []
  try {
    for (const piece of pieces) for (const message of reader.push(piece)) seen.push(structuredClone(message))
  } catch (error) {
    if (!(error instanceof PenError) || error.code !== 'WIRE') throw error
    seen.push('refused')
  }
  for (const message of seen as { bytes?: unknown }[])
    if (message.bytes instanceof Uint8Array && message.bytes.length > MAX_PAYLOAD) throw new Error('too long')
  return JSON.stringify(seen)
}

/** The result must not depend on where the stream was split. */
function sameHoweverCut(make: () => Reader<unknown>): (input: Uint8Array) => void {
  return input => {
    const whole = readAll(make(), [input])
    const middle = input.length >> 1
    if (readAll(make(), [input.subarray(0, middle), input.subarray(middle)]) !== whole)
      throw new Error('reads differently in halves')
    if (
      readAll(
        make(),
        Array.from(input, (_, i) => input.subarray(i, i + 1)),
      ) !== whole
    )
      throw new Error('reads differently byte by byte')
  }
}

const BYTES = new TextEncoder().encode('bytes of a stream')

fuzz('reports of a compromised exec daemon read the same however they are split, or are refused', {
  seeds: [
    Buffer.concat([
      encodeReport({ kind: 'ready' }),
      encodeReport({ kind: 'started', channel: 1 }),
      encodeReport({ kind: 'stdout', channel: 1, bytes: BYTES }),
      encodeReport({ kind: 'exit', channel: 1, how: 'signal', value: 9 }),
    ]),
    encodeReport({ kind: 'failed', channel: 2, errno: 'ENOENT', reason: 'no such file' }),
    encodeReport({ kind: 'window', channel: 2, bytes: 4096 }),
    encodeReport({ kind: 'full' }),
  ],
  dictionary: ['\0\0\0\0', '\0\x01\0\0', '\0\x01\0\x01', '\xff\xff\xff\xff', 'EACCES '],
  maxBytes: 512,
  run: sameHoweverCut(() => new ReportReader()),
})

const EXEC = { argv: ['sh', '-c', 'true'], cwd: '/', env: [{ name: 'A', value: 'b' }] }

fuzz('orders of a client read the same however they are split, or are refused', {
  seeds: [
    encodeOrder({ kind: 'exec', channel: 1, order: { ...EXEC, terminal: { columns: 80, rows: 24 } } }),
    encodeOrder({ kind: 'exec', channel: 2, order: { ...EXEC, terminal: undefined } }),
    Buffer.concat([
      encodeOrder({ kind: 'stdin', channel: 1, bytes: BYTES }),
      encodeOrder({ kind: 'resize', channel: 1, columns: 100, rows: 40 }),
      encodeOrder({ kind: 'signal', channel: 1, signal: 2 }),
      encodeOrder({ kind: 'window', channel: 1, stream: 'stderr', bytes: 9 }),
      encodeOrder({ kind: 'stdin-end', channel: 1 }),
      encodeOrder({ kind: 'end', channel: 1 }),
    ]),
  ],
  dictionary: ['\0\0\0\0', '\0\x01\0\0', '"argv":', '"env":[["A","b"]]', 'null', '[', '{', '\\u0000', '1e9'],
  maxBytes: 512,
  run: sameHoweverCut(() => new OrderReader()),
})

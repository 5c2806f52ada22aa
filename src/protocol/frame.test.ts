import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PenError } from '../base/error.ts'
import { encodeFrame, type Frame, FrameDecoder, MAX_PAYLOAD, MAX_TEXT } from './frame.ts'

const LONG = new Set([2])

const copy = (frame: Frame): Frame => ({ ...frame, payload: Uint8Array.from(frame.payload) })

/** All frames of a stream that arrives in pieces of these lengths, repeated. */
function decode(bytes: Uint8Array, lengths: readonly number[] = [bytes.length], long = LONG): Frame[] {
  const decoder = new FrameDecoder(long)
  const frames: Frame[] = []
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const length = Math.max(1, lengths[n % lengths.length] ?? 1)
    // A copy that is overwritten afterwards: the decoder must not keep it.
    const piece = bytes.slice(at, at + length)
    frames.push(...Array.from(decoder.push(piece), copy))
    piece.fill(0xee)
    at += length
  }
  return frames
}

const refusal = (act: () => unknown): string => {
  try {
    act()
  } catch (error) {
    if (error instanceof PenError && error.code === 'WIRE') return error.message
    throw error
  }
  return 'not refused'
}

const frame = fc.record({
  kind: fc.integer({ min: 1, max: 255 }),
  channel: fc.integer({ min: 0, max: 0xffff_ffff }),
  payload: fc.uint8Array({ maxLength: 300 }),
})

describe('frames', () => {
  test('come out as they went in, wherever the stream is split', () => {
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1 }),
        (frames, cuts) => {
          const bytes = Buffer.concat(frames.map(f => encodeFrame(f.kind, f.channel, f.payload)))
          expect(decode(bytes, cuts)).toEqual(frames)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('of every length up to the largest do, byte by byte', () => {
    for (const length of [0, 1, 9, MAX_PAYLOAD - 1, MAX_PAYLOAD]) {
      const payload = new Uint8Array(length).fill(7)
      expect(decode(encodeFrame(3, 5, payload), [1])).toEqual([{ kind: 3, channel: 5, payload }])
    }
  })

  test('with a larger length are refused before their payload arrives', () => {
    const header = encodeFrame(3, 5).slice()
    new DataView(header.buffer).setUint32(0, MAX_PAYLOAD + 1)
    expect(refusal(() => decode(header))).toContain('a frame of 65537 bytes')
    new DataView(header.buffer).setUint32(0, 0xffff_ffff)
    expect(refusal(() => decode(header))).toContain('a frame of 4294967295 bytes')
  })

  test('that are truncated are never returned', () => {
    const bytes = encodeFrame(3, 5, new Uint8Array(100))
    for (let length = 0; length < bytes.length; length++)
      expect(decode(bytes.subarray(0, length))).toEqual([])
  })

  test('are not read after an error of the decoder or of its reader', () => {
    const decoder = new FrameDecoder()
    const twice = Buffer.concat([encodeFrame(3, 5), encodeFrame(4, 5)])
    for (const _ of decoder.push(twice)) break
    expect(refusal(() => [...decoder.push(encodeFrame(3, 5))])).toContain('after an error')
  })

  test('of garbage are frames within bounds, or a refusal, and nothing else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
        try {
          for (const { payload } of decode(bytes)) expect(payload.length).toBeLessThanOrEqual(MAX_PAYLOAD)
        } catch (error) {
          expect((error as PenError).code).toBe('WIRE')
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('a long message', () => {
  const long = new Uint8Array(MAX_PAYLOAD * 2 + 5).map((_, i) => i)

  test('comes in parts and is joined, up to the limit', () => {
    for (const payload of [long, new Uint8Array(MAX_PAYLOAD * 2), new Uint8Array(MAX_TEXT)])
      expect(decode(encodeFrame(2, 9, payload), [60_000])).toEqual([{ kind: 2, channel: 9, payload }])
  })

  test('larger than the limit is neither written nor read', () => {
    expect(refusal(() => encodeFrame(2, 9, new Uint8Array(MAX_TEXT + 1)))).toContain('a message of')
    const part = encodeFrame(2, 9, long).subarray(0, 9 + MAX_PAYLOAD)
    const endless = Buffer.concat(Array.from({ length: 32 }, () => part))
    expect(refusal(() => decode(endless))).toContain('too many parts')
  })

  test('is refused where none is expected, of another kind, interrupted, or in small parts', () => {
    const bytes = encodeFrame(2, 9, long)
    expect(refusal(() => decode(bytes, [bytes.length], new Set()))).toContain('an odd part')
    expect(refusal(() => decode(encodeFrame(3, 9, long)))).toContain('that has none')
    const begun = bytes.subarray(0, 9 + MAX_PAYLOAD)
    expect(refusal(() => decode(Buffer.concat([begun, encodeFrame(2, 8)])))).toContain('interrupted')
    expect(refusal(() => decode(encodeFrame(0, 9, new Uint8Array(5))))).toContain('an odd part')
  })
})

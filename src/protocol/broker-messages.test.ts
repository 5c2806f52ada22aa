import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PenError } from '../base/error.ts'
import {
  encodeReply,
  encodeRequest,
  type Reply,
  ReplyReader,
  type RequestMessage,
  RequestReader,
} from './broker-messages.ts'
import { encodeFrame } from './frame.ts'

const channel = fc.integer({ min: 1, max: 0xffff_ffff })
const whole = fc.maxSafeNat()
const path = fc.string({ unit: 'binary', maxLength: 30 })
const bytes = fc.uint8Array({ minLength: 1, maxLength: 50 })
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(model, { noNullPrototype: true })

const ask = fc.oneof(
  record({
    kind: fc.constant('request'),
    channel,
    request: fc.oneof(
      fc.constant({ op: 'grants' }),
      record({ op: fc.constant('stat'), path }),
      record({ op: fc.constant('list'), path, from: whole }),
      record({ op: fc.constant('read'), path, from: whole, length: fc.option(whole) }),
      record({ op: fc.constant('write'), path, executable: fc.boolean() }),
    ),
  }),
  record({ kind: fc.constant('data'), channel, bytes }),
  record({ kind: fc.constantFrom('complete', 'cancel'), channel }),
  record({ kind: fc.constant('window'), channel, bytes: whole }),
) as fc.Arbitrary<RequestMessage>

const kind = fc.constantFrom('file', 'directory')
const reply = fc.oneof(
  record({
    kind: fc.constant('granted'),
    channel,
    places: fc.array(record({ path, kind, write: fc.boolean(), until: fc.option(whole) })),
  }),
  record({
    kind: fc.constant('facts'),
    channel,
    facts: record({ kind, size: whole, modified: whole, executable: fc.boolean(), writable: fc.boolean() }),
  }),
  record({
    kind: fc.constant('page'),
    channel,
    page: record({
      entries: fc.array(record({ name: path, kind: fc.constantFrom('file', 'directory', 'link', 'other') })),
      next: fc.option(whole),
      truncated: fc.boolean(),
    }),
  }),
  record({ kind: fc.constant('data'), channel, bytes }),
  record({ kind: fc.constantFrom('window', 'done'), channel, bytes: whole }),
  record({
    kind: fc.constant('refused'),
    channel,
    refusal: record({ reason: fc.constant('link'), why: path, fix: fc.option(path) }),
  }),
) as fc.Arbitrary<Reply>

const refused = (act: () => unknown): boolean => {
  try {
    act()
  } catch (error) {
    if (error instanceof PenError && error.code === 'WIRE') return true
    throw error
  }
  return false
}

/** Lone surrogates do not survive UTF-8, so values are compared after encoding. */
const sound = (value: unknown): boolean => JSON.stringify(value) === JSON.stringify(value).toWellFormed()

describe('messages', () => {
  test('are read as they were written, split anywhere', () => {
    fc.assert(
      fc.property(fc.array(ask, { maxLength: 5 }), fc.integer({ min: 1, max: 40 }), (all, length) => {
        fc.pre(sound(all))
        const stream = Buffer.concat(all.map(encodeRequest))
        const reader = new RequestReader()
        const seen: RequestMessage[] = []
        for (let at = 0; at < stream.length; at += length)
          for (const one of reader.push(stream.subarray(at, at + length))) seen.push(structuredClone(one))
        expect(seen).toEqual(all)
      }),
    )
    fc.assert(
      fc.property(reply, one => {
        fc.pre(sound(one))
        expect([...new ReplyReader().push(encodeReply(one))]).toEqual([one])
      }),
    )
  })

  test('a directory of long names comes in parts', () => {
    const entries = Array.from({ length: 1000 }, (_, i) => ({
      name: `${i}`.padEnd(255, 'é'),
      kind: 'file' as const,
    }))
    const page: Reply = { kind: 'page', channel: 1, page: { entries, next: null, truncated: false } }
    expect([...new ReplyReader().push(encodeReply(page))]).toEqual([page])
  })

  test('with unexpected values are refused, and their valid twins are not', () => {
    const request = (value: unknown) =>
      refused(() => [...new RequestReader().push(encodeFrame(1, 1, Buffer.from(JSON.stringify(value))))])
    const read = { op: 'read', path: '/a', from: 0, length: null }
    expect(request(read)).toBe(false)
    for (const wrong of [
      { ...read, op: 'unlink' },
      { ...read, more: 1 },
      { ...read, from: -1 },
      { ...read, from: 1.5 },
      { ...read, from: 2 ** 60 },
      { ...read, length: '5' },
      { ...read, path: 5 },
      { ...read, path: 'x'.repeat(9000) },
      { op: 'read', path: '/a' },
      { op: 'write', path: '/a', executable: 'yes' },
      [read],
      null,
    ])
      expect([wrong, request(wrong)]).toEqual([wrong, true])
    expect(refused(() => [...new RequestReader().push(encodeFrame(1, 1, Buffer.from([0xff])))])).toBe(true)
    expect(refused(() => [...new RequestReader().push(encodeFrame(4, 1, Buffer.alloc(8, 0xff)))])).toBe(true)
  })

  test('garbage is refused by both readers, or read, and neither ever fails otherwise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), garbage => {
        refused(() => [...new RequestReader().push(garbage)])
        refused(() => [...new ReplyReader().push(garbage)])
      }),
    )
  })
})

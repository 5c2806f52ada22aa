import { describe, expect, test } from 'bun:test'
import { MessageWriter } from './netlink.ts'
import { readMessages } from './refused.ts'

const NEW_ELEMENTS = 0x0a0c
const u32 = (value: number): number[] => [value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24]

type Body = (to: MessageWriter) => void

function message(type: number, body: readonly number[] | Body, flags = 2): number[] {
  const to = new MessageWriter(1024)
  to.message(type, flags, 0, () => (typeof body === 'function' ? body(to) : to.raw(body)))
  return [...to.written()]
}

const elements =
  (...keys: (readonly number[])[]): Body =>
  to => {
    to.raw([1, 0, 0, 0])
    to.text(1, 'pen')
    to.nested(3, () => {
      for (const key of keys) to.nested(1, () => to.nested(1, () => to.bytes(1, key)))
    })
  }
const done = message(3, u32(0))
const read = (...messages: (readonly number[])[]) => readMessages(Uint8Array.from(messages.flat()))

const V4 = [192, 0, 2, 1, 1, 187, 0, 0]
const V6 = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 123, 0, 0]

describe('what the kernel says it refused', () => {
  test('is read from every message, addresses of both families', () => {
    const { refused, isLast } = read(
      message(NEW_ELEMENTS, elements(V4, V6)),
      message(NEW_ELEMENTS, elements(V4)),
      done,
    )
    expect(refused.map(({ address, port }) => `${address} ${port}`)).toEqual([
      '192.0.2.1 443',
      '2001:db8::1 123',
      '192.0.2.1 443',
    ])
    expect(isLast).toBe(true)
  })

  test('is nothing when the set is empty, or the message is about something else', () => {
    expect(read(done).refused).toEqual([])
    expect(read(message(NEW_ELEMENTS, elements()), done).refused).toEqual([])
    expect(read(message(0x0a00, elements(V4)), done).refused).toEqual([])
  })

  test('is asked for again when it changed meanwhile, and goes on until its last message', () => {
    expect(read(message(NEW_ELEMENTS, elements(V4), 0x12))).toMatchObject({
      isInterrupted: true,
      isLast: false,
    })
  })

  test('is an error when it cannot be read: it must not pass for nothing', () => {
    expect(() => read(message(2, u32(-1)))).toThrow('EPERM')
    expect(() => read(message(NEW_ELEMENTS, elements(V4)).slice(0, -4))).toThrow()
    expect(() => read(u32(4).concat(Array<number>(20).fill(0)))).toThrow()
    for (const key of [[], V4.slice(1), [...V4, 0], [192, 0, 2, 1, 0, 0, 0, 0], V6.slice(4)])
      expect(() => read(message(NEW_ELEMENTS, elements(key)), done)).toThrow()
  })
})

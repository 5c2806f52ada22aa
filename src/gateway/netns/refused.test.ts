import { describe, expect, test } from 'bun:test'
import { MessageWriter, readMessages } from '../../base/kernel/netlink.ts'
import { readRefused } from './refused.ts'

const NEW_ELEMENTS = 0x0a0c

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
const done = message(3, [0, 0, 0, 0])
const read = (...messages: (readonly number[])[]) =>
  readRefused(readMessages(Uint8Array.from(messages.flat())))

const V4 = [192, 0, 2, 1, 1, 187, 0, 0]
const V6 = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 123, 0, 0]

describe('refused datagrams', () => {
  test('are read from every message, with addresses of both families', () => {
    const { refused, isInterrupted } = read(
      message(NEW_ELEMENTS, elements(V4, V6)),
      message(NEW_ELEMENTS, elements(V4)),
      done,
    )
    expect(refused.map(({ address, port }) => `${address} ${port}`)).toEqual([
      '192.0.2.1 443',
      '2001:db8::1 123',
      '192.0.2.1 443',
    ])
    expect(isInterrupted).toBe(false)
  })

  test('are none when the set is empty, or the message is about something else', () => {
    expect(read(done).refused).toEqual([])
    expect(read(message(NEW_ELEMENTS, elements()), done).refused).toEqual([])
    expect(read(message(0x0a00, elements(V4)), done).refused).toEqual([])
  })

  test('are marked when the set changed while it was read, also by the last message', () => {
    expect(read(message(NEW_ELEMENTS, elements(V4), 0x12), done).isInterrupted).toBe(true)
    expect(read(message(NEW_ELEMENTS, elements(V4)), message(3, [0, 0, 0, 0], 0x12))).toMatchObject({
      isInterrupted: true,
    })
  })

  test('are an error when they cannot be read, never an empty list', () => {
    expect(() => read(message(NEW_ELEMENTS, elements(V4)).slice(0, -4))).toThrow()
    for (const key of [[], V4.slice(1), [...V4, 0], [192, 0, 2, 1, 0, 0, 0, 0], V6.slice(4)])
      expect(() => read(message(NEW_ELEMENTS, elements(key)), done)).toThrow()
  })
})

import { describe, expect, test } from 'bun:test'
import { onlyWhen } from '../../../test/skip.ts'
import { close } from './descriptor.ts'
import {
  dump,
  errnoIn,
  isLast,
  MessageWriter,
  NETLINK,
  NLM_F,
  openNetlink,
  readAttributes,
  readMessages,
} from './netlink.ts'

const onLinux = onlyWhen(process.platform === 'linux')

function written(write: (to: MessageWriter) => void): Uint8Array {
  const to = new MessageWriter(256)
  write(to)
  return to.written()
}

const twoMessages = written(to => {
  to.message(7, 5, 41, () => {
    to.raw([1, 0, 0, 0])
    to.text(1, 'pen')
    to.nested(2, () => to.number(3, 258))
  })
  to.message(3, 0, 42, () => to.raw([0, 0, 0, 0]))
})

describe('netlink', () => {
  test('reads back the messages and attributes that it writes', () => {
    const [first, last] = [...readMessages(twoMessages)]
    expect(first).toMatchObject({ type: 7, flags: 5, sequence: 41 })
    const attributes = [...readAttributes(first?.body.subarray(4) ?? new Uint8Array())]
    expect(attributes.map(([type]) => type)).toEqual([1, 2])
    expect(Buffer.from(attributes[0]?.[1] ?? []).toString()).toBe('pen\0')
    expect([...readAttributes(attributes[1]?.[1] ?? new Uint8Array())]).toEqual([
      [3, Uint8Array.of(0, 0, 1, 2)],
    ])
    expect([first, last].map(message => message !== undefined && isLast(message))).toEqual([false, true])
  })

  test('a message or an attribute that is cut off is an error', () => {
    expect(() => [...readMessages(twoMessages.subarray(0, -4))]).toThrow('cut off')
    expect(() => [...readMessages(Uint8Array.of(4, ...Array<number>(20).fill(0)))]).toThrow('cut off')
    expect(() => [...readAttributes(Uint8Array.of(9, 0, 1, 0, 1))]).toThrow('cut off')
    expect(() => [...readAttributes(Uint8Array.of(3, 0, 1, 0))]).toThrow('cut off')
  })

  test('an error message carries the errno, and 0 acknowledges a request', () => {
    const errorOf = (...body: number[]) => {
      const [message] = readMessages(written(to => to.message(2, 0, 0, () => to.raw(body))))
      return message && errnoIn(message)
    }
    expect(errorOf(0xff, 0xff, 0xff, 0xff)).toBe(1)
    expect(errorOf(0, 0, 0, 0)).toBe(0)
    expect([...readMessages(twoMessages)].map(errnoIn)).toEqual([undefined, undefined])
  })

  onLinux('a dump ends with the last message, or throws what the kernel answers', () => {
    const socket = openNetlink(NETLINK.sockDiag)
    const socketsOf = (family: number) => {
      const body = Uint8Array.of(family, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, ...Array<number>(16).fill(0))
      const request = written(to => to.message(20, NLM_F.request | NLM_F.dump, 9, () => to.raw(body)))
      return [...dump('list the sockets', socket, request)]
    }
    try {
      const answers = socketsOf(1)
      expect(answers.map(isLast).indexOf(true)).toBe(answers.length - 1)
      expect(answers.every(({ sequence }) => sequence === 9)).toBe(true)
      expect(() => socketsOf(255)).toThrow('list the sockets: E')
    } finally {
      close(socket)
    }
  })
})

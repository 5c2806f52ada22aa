import { describe, expect, test } from 'bun:test'
import { asSupervisorOrder, ReportLines } from './supervisor-order.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('what a supervisor reports', () => {
  test('is whole lines, however they are cut', () => {
    const lines = new ReportLines()
    expect(lines.push(bytes('{"say":"a'))).toEqual([])
    expect(lines.push(bytes('b"}\n{"ready":true}\n{"sa'))).toEqual([{ say: 'ab' }, { ready: true }])
  })

  test('is a failure with its code, place and fix', () => {
    const failed = { code: 'GAP', what: 'w', at: 'here', hint: 'h' }
    expect(new ReportLines().push(bytes(`${JSON.stringify({ failed })}\n`))).toMatchObject([{ failed }])
  })

  test.each(['{}', 'x', '{"failed":{"code":"NOBODY_KNOWS","what":"w","at":null,"hint":null}}', 'null'])(
    'is refused when it is %s',
    line => {
      expect(() => new ReportLines().push(bytes(`${line}\n`))).toThrow()
    },
  )

  test('has no line without an end', () => {
    expect(() => new ReportLines().push(new Uint8Array(70_000).fill(97))).toThrow()
  })
})

describe('an order for a supervisor', () => {
  const order = { id: 'a-1', flags: {}, offline: true, allowUserExpansion: false }

  test('is taken when it is whole', () => {
    expect(asSupervisorOrder(order)).toEqual(order)
  })

  test.each([null, {}, 'x', { ...order, flags: null }, { ...order, offline: 'yes' }])(
    'is none when it is %j',
    value => {
      expect(asSupervisorOrder(value)).toBeUndefined()
    },
  )
})

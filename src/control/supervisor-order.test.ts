import { describe, expect, test } from 'bun:test'
import { asSupervisorOrder, ReportLines } from './supervisor-order.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('what a supervisor reports', () => {
  test('is split into complete lines, wherever the chunks end', () => {
    const lines = new ReportLines()
    expect(lines.push(bytes('{"say":"a'))).toEqual([])
    expect(lines.push(bytes('b"}\n{"ready":true}\n{"sa'))).toEqual([{ say: 'ab' }, { ready: true }])
  })

  test('contains an error with its code, place and hint', () => {
    const failed = { code: 'GAP', what: 'w', at: 'here', hint: 'h' }
    expect(new ReportLines().push(bytes(`${JSON.stringify({ failed })}\n`))).toMatchObject([{ failed }])
  })

  test.each(['{}', 'x', '{"failed":{"code":"NOBODY_KNOWS","what":"w","at":null,"hint":null}}', 'null'])(
    'is refused when it is %s',
    line => {
      expect(() => new ReportLines().push(bytes(`${line}\n`))).toThrow()
    },
  )

  test('is refused when a line does not end', () => {
    expect(() => new ReportLines().push(new Uint8Array(70_000).fill(97))).toThrow()
  })
})

describe('an order for a supervisor', () => {
  const order = { id: 'a-1', flags: {}, offline: true, allowUserExpansion: false }

  test('is accepted when it is complete', () => {
    expect(asSupervisorOrder(order)).toEqual(order)
  })

  test.each([null, {}, 'x', { ...order, flags: null }, { ...order, offline: 'yes' }])(
    'is refused when it is %j',
    value => {
      expect(asSupervisorOrder(value)).toBeUndefined()
    },
  )
})

import { describe, expect, test } from 'bun:test'
import { parseOrder, parseReport } from './order.ts'

describe('a report', () => {
  test('is trusted only within its checked fields', () => {
    expect(parseReport('{"kind":"started","pid":77}')).toEqual({ kind: 'started', pid: 77 })
    expect(parseReport('{"kind":"ended","code":3,"signal":null,"survivors":2}')).toEqual({
      kind: 'ended',
      code: 3,
      signal: null,
      survivors: 2,
    })
    expect(parseReport('{"kind":"ended","code":null,"signal":"SIGKILL"}')).toMatchObject({
      signal: 'SIGKILL',
      survivors: 0,
    })
  })

  test.each([
    '',
    'null',
    '[]',
    '{"kind":"started","pid":-1}',
    '{"kind":"started","pid":1}',
    '{"kind":"started","pid":1.5}',
    '{"kind":"started","pid":"2"}',
    '{"kind":"other"}',
  ])('that is invalid starts nothing: %j', line => {
    expect(parseReport(line)).toBeUndefined()
  })

  test('carries no text of its own into a log', () => {
    expect(parseReport('{"kind":"ended","code":700,"signal":"\\u001b[2J","survivors":-4}')).toEqual({
      kind: 'ended',
      code: 188,
      signal: null,
      survivors: 0,
    })
  })
})

test('an invalid order is not carried out', () => {
  for (const line of ['', '{}', '{"file":1,"argv":[]}', 'x']) expect(parseOrder(line)).toBeUndefined()
})

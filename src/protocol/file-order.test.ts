import { describe, expect, test } from 'bun:test'
import { PenError } from '../base/error.ts'
import { type FileOrder, readFileOrder, writeFileOrder } from './file-order.ts'

const ORDERS: readonly FileOrder[] = [
  { op: 'read', path: '/a', from: 0, length: 5 },
  { op: 'write', path: '/a', executable: false },
  { op: 'list', path: '/a', most: 5 },
  { op: 'search', path: '/a', pattern: 'x', ignoreCase: true, name: '', most: 5 },
]

describe('a request to the file tool', () => {
  test.each(ORDERS)('is read as it was written: %j', order => {
    expect(readFileOrder(writeFileOrder(order))).toEqual(order)
  })

  test.each([
    ['', 'nothing'],
    ['null', 'no object'],
    ['[]', 'a list'],
    ['{"op":"unlink","path":"/a"}', 'another operation'],
    ['{"op":"hasOwnProperty"}', 'a word of the language'],
    ['{"op":"list","path":"/a"}', 'a field too few'],
    ['{"op":"list","path":"/a","most":5,"more":1}', 'a field too many'],
    ['{"op":"list","path":"/a","most":-1}', 'a number below zero'],
    ['{"op":"list","path":"/a","most":1.5}', 'a fraction'],
    ['{"op":"list","path":5,"most":1}', 'a path that is a number'],
    ['{"op":"list","path":"/a\\u0000b","most":1}', 'a path with a NUL byte'],
  ])('with anything else is refused: %j', word => {
    expect(() => readFileOrder(word)).toThrow(PenError)
  })

  test('that is too long is refused', () => {
    expect(() => readFileOrder(JSON.stringify({ op: 'list', path: 'a'.repeat(70_000), most: 1 }))).toThrow(
      PenError,
    )
  })
})

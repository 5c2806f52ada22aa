import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { TopLevelId } from './top-level-id.ts'

const idIn = (text: string): unknown => new TopLevelId().push(new TextEncoder().encode(text)).found

test.each([
  ['{"id":1,"method":"x"}', 1],
  ['{"method":"x","params":{"id":2},"id":1}', 1],
  [' { "id" : "a\\"b" , "x":[{"id":3}]}', 'a"b'],
  ['{"id":1,"id":2}', 2],
  ['{"method":"id","params":{"id":2}}', undefined],
  ['{"id":null}', undefined],
  ['{"id":{"id":1}}', undefined],
  ['[{"id":1}]', undefined],
  ['{"params":"\\"id\\":7","x":"}","id":-3}', -3],
  ['{"id":7,"params":{"broken', 7],
  ['', undefined],
])('the id of %s is %p', (text, id) => {
  expect(idIn(text)).toEqual(id as never)
})

test('the id is the one that a parser finds, at any position and with any chunks', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.integer(), fc.string({ maxLength: 20 })),
      fc.jsonValue(),
      fc.boolean(),
      fc.nat(7),
      (id, params, first, step) => {
        const text = JSON.stringify(first ? { id, params } : { params, id })
        const bytes = new TextEncoder().encode(text)
        const finder = new TopLevelId()
        for (let at = 0; at < bytes.length; at += step + 1) finder.push(bytes.subarray(at, at + step + 1))
        expect(finder.found).toBe(id)
      },
    ),
  )
})

import { describe, expect, test } from 'bun:test'
import { PenError } from '../../base/error.ts'
import { mountField } from './mount-field.ts'

describe('a mount for an engine', () => {
  test.each([
    ['/plain', 'source=/plain'],
    ['/a b:c=d', 'source=/a b:c=d'],
    ['/a,readonly', '"source=/a,readonly"'],
    ['/a"b', '"source=/a""b"'],
    ['/a\nb', '"source=/a\nb"'],
    ['/ä ö ', '"source=/ä ö "'],
  ])('%j is quoted so that it stays one field', (path, field) => {
    expect(mountField(['type=bind', ['source', path]])).toBe(`type=bind,${field}`)
  })

  test('a carriage return, which engines drop, is refused', () => {
    expect(() => mountField([['source', '/a\r\nb']])).toThrow(PenError)
  })
})

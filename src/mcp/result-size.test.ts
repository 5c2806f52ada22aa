import { expect, test } from 'bun:test'
import { encodeBytes, firstItems } from './result-size.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

test('text is unchanged, and a character that is cut at the end is left for the next part', () => {
  expect(encodeBytes(bytes('aé'), true)).toEqual({ content: 'aé', encoding: 'utf-8', length: 3 })
  expect(encodeBytes(bytes('aé').subarray(0, 2), false)).toEqual({
    content: 'a',
    encoding: 'utf-8',
    length: 1,
  })
  expect(encodeBytes(bytes('a🖊').subarray(0, 4), false)).toMatchObject({ content: 'a', length: 1 })
  expect(encodeBytes(new Uint8Array(), true)).toEqual({ content: '', encoding: 'utf-8', length: 0 })
})

test('a part that begins inside a character is still text', () => {
  expect(encodeBytes(bytes('🖊a').subarray(1), true)).toMatchObject({ encoding: 'utf-8', content: '\ufffda' })
})

test('bytes that are not text are encoded in base64, with a lower bound', () => {
  expect(encodeBytes(new Uint8Array([0xff, 0xfe, 1]), true)).toEqual({
    content: '//4B',
    encoding: 'base64',
    length: 3,
  })
  expect(encodeBytes(bytes('a\0b'), true)).toMatchObject({ encoding: 'base64', length: 3 })
  expect(encodeBytes(bytes('aé').subarray(0, 2), true)).toMatchObject({ encoding: 'base64' })
  expect(encodeBytes(new Uint8Array(65_536).fill(0xff), true)).toMatchObject({ length: 8192 })
})

test('a list is cut to what fits, with the number of missing items', () => {
  expect(firstItems(['aa', 'bb', 'cc'], 8)).toEqual({ shown: ['aa', 'bb'], rest: 1 })
  expect(firstItems(['aa', 'bb'], 8)).toEqual({ shown: ['aa', 'bb'], rest: 0 })
})

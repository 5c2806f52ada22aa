import { expect, test } from 'bun:test'
import { firstItems, showBytes } from './shown.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

test('text is shown as it is, and a character that the end of a part cuts is left for the next', () => {
  expect(showBytes(bytes('aé'), true)).toEqual({ content: 'aé', encoding: 'utf-8', length: 3 })
  expect(showBytes(bytes('aé').subarray(0, 2), false)).toEqual({
    content: 'a',
    encoding: 'utf-8',
    length: 1,
  })
  expect(showBytes(bytes('a🖊').subarray(0, 4), false)).toMatchObject({ content: 'a', length: 1 })
  expect(showBytes(new Uint8Array(), true)).toEqual({ content: '', encoding: 'utf-8', length: 0 })
})

test('a part that begins within a character is still text', () => {
  expect(showBytes(bytes('🖊a').subarray(1), true)).toMatchObject({ encoding: 'utf-8', content: '\ufffda' })
})

test('what is no text is shown in base64, and less of it', () => {
  expect(showBytes(new Uint8Array([0xff, 0xfe, 1]), true)).toEqual({
    content: '//4B',
    encoding: 'base64',
    length: 3,
  })
  expect(showBytes(bytes('a\0b'), true)).toMatchObject({ encoding: 'base64', length: 3 })
  expect(showBytes(bytes('aé').subarray(0, 2), true)).toMatchObject({ encoding: 'base64' })
  expect(showBytes(new Uint8Array(65_536).fill(0xff), true)).toMatchObject({ length: 8192 })
})

test('a list is shown as far as it fits, and tells how much is left', () => {
  expect(firstItems(['aa', 'bb', 'cc'], 8)).toEqual({ shown: ['aa', 'bb'], rest: 1 })
  expect(firstItems(['aa', 'bb'], 8)).toEqual({ shown: ['aa', 'bb'], rest: 0 })
})

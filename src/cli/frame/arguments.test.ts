import { expect, test } from 'bun:test'
import { checkArguments } from './arguments.ts'

test('text in any script passes without a look at the raw arguments', () => {
  checkArguments(['run', '--', 'écho', '日本', '', '🙂'], () => {
    throw new Error('not needed')
  })
})

test('bytes that are no UTF-8 are refused, the replacement character itself is not', () => {
  const typed = ['ls', 'a\ufffd']
  expect(() => checkArguments(typed, () => new Uint8Array([0x61, 0xff, 0]))).toThrow(
    'argument 2 is not valid UTF-8',
  )
  expect(() => checkArguments(typed, () => undefined)).toThrow('argument 2 is not valid UTF-8')
  checkArguments(typed, () => Buffer.from('ls\0a\ufffd\0'))
})

test('NUL bytes and lone surrogates are refused', () => {
  expect(() => checkArguments(['a\0'])).toThrow('NUL')
  expect(() => checkArguments(['\udc00'])).toThrow('Unicode')
})

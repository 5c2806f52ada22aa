import { expect, test } from 'bun:test'
import { painted, plain, wantsColour } from './colour.ts'

const yes = () => true
const no = () => false

test('a terminal gets colour, a pipe or file does not', () => {
  expect(wantsColour({ TERM: 'xterm' }, yes)).toBe(true)
  expect(wantsColour({}, no)).toBe(false)
})

test('NO_COLOR always turns colour off; an empty value does nothing', () => {
  expect(wantsColour({ NO_COLOR: '1', FORCE_COLOR: '1' }, yes)).toBe(false)
  expect(wantsColour({ NO_COLOR: '' }, yes)).toBe(true)
})

test('FORCE_COLOR decides for a pipe and for a dumb terminal', () => {
  expect(wantsColour({ FORCE_COLOR: '1', TERM: 'dumb' }, no)).toBe(true)
  expect(wantsColour({ FORCE_COLOR: '0' }, yes)).toBe(false)
  expect(wantsColour({ FORCE_COLOR: '' }, no)).toBe(false)
})

test('a dumb terminal gets none', () => {
  expect(wantsColour({ TERM: 'dumb' }, yes)).toBe(false)
})

test('painting ends where the text ends', () => {
  expect(painted('red', 'x')).toBe('\u001b[31mx\u001b[39m')
  expect(plain('red', 'x')).toBe('x')
})

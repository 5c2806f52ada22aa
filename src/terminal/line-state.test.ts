import { describe, expect, test } from 'bun:test'
import { LineState } from './line-state.ts'

const after = (...texts: string[]) => {
  const line = new LineState()
  for (const text of texts) line.saw(text)
  const unasked = line.undo()
  line.wantBegin()
  return [unasked, line.undo()]
}

describe('what pen says at the end begins on a line of its own', () => {
  test.each<[string[]]>([[['text']], [['line\n', '$ ']], [['\u001b[1m⠙\u001b[0m']], [['a\r\n', '^C']]])(
    'after %j',
    texts => expect(after(...texts)).toEqual(['', '\r\n']),
  )
  test.each<[string[]]>([
    [[]],
    [['line\r\n']],
    [['⠙', '\r\u001b[K']],
    [['line\n', '\u001b[?25h', '\u001b=']],
  ])('which it is at already after %j', texts => expect(after(...texts)).toEqual(['', '']))
})

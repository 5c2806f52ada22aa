import { describe, expect, test } from 'bun:test'
import { plain } from './colour.ts'
import { allNew, lineDifference } from './line-difference.ts'

const difference = (before: string, after: string): string[] =>
  lineDifference(before, after, plain).split('\n')

describe('a difference by lines', () => {
  test('shows removed and added lines with context', () => {
    expect(difference('a\nb\nc\n', 'a\nx\nc\ny\n')).toEqual(['  a', '- b', '+ x', '  c', '+ y', '  '])
  })

  test('omits lines far from every change, and marks the gap', () => {
    const lines = Array.from({ length: 20 }, (_, i) => `line ${i}`)
    const changed = lines.with(10, 'other')
    expect(difference(lines.join('\n'), changed.join('\n'))).toEqual([
      '  …',
      ...['  line 7', '  line 8', '  line 9', '- line 10', '+ other', '  line 11', '  line 12', '  line 13'],
      '  …',
    ])
  })

  test('shows every new line in full', () => {
    const long = 'x'.repeat(60_000)
    expect(difference('a', `a\n${long}`)).toEqual(['  a', `+ ${long}`])
    const many = Array.from({ length: 3000 }, (_, i) => `new ${i}`)
    const old = Array.from({ length: 3000 }, (_, i) => `old ${i}`)
    const shown = difference(old.join('\n'), many.join('\n'))
    expect(shown.filter(line => line.startsWith('+ ')).length).toBe(3000)
    expect(shown.filter(line => line.startsWith('- ')).length).toBe(3000)
  })

  test('of hostile text cannot drive a terminal or forge a line', () => {
    expect(difference('a', 'a\u001b[2K\r+ b\u202e')).toEqual(['- a', '+ a\\u001b[2K\\u000d+ b\\u202e'])
    expect(allNew('a\u001b\n', plain)).toBe('+ a\\u001b')
  })
})

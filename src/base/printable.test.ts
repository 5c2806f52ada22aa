import { describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { printable, printableJson, shellWord } from './printable.ts'

describe('printable', () => {
  test('plain text in any script is shown as it is', () => {
    expect(printable('naïve 日本語 ~/src/x.ts 🙂')).toBe('naïve 日本語 ~/src/x.ts 🙂')
  })

  const hostile: [string, string, string][] = [
    ['an escape sequence', '\u001b[2J', '\\u001b[2J'],
    ['an 8-bit control', '\u009b31m', '\\u009b31m'],
    ['a line break', 'a\nb\r', 'a\\u000ab\\u000d'],
    ['a Unicode line separator', 'a\u2028b', 'a\\u2028b'],
    ['a bidirectional override', 'txt.\u202eexe', 'txt.\\u202eexe'],
    ['a zero-width space', 'a\u200bb', 'a\\u200bb'],
    ['an invisible letter', 'a\u3164b', 'a\\u3164b'],
    ['a variation selector', '.env\ufe0f', '.env\\ufe0f'],
    ['a tag character', 'a\u{e0041}b', 'a\\u{e0041}b'],
    ['a lone surrogate', 'a\ud800b', 'a\\ud800b'],
    ['a backslash', '\\u001b', '\\\\u001b'],
  ]
  test.each(hostile)('%s is spelled out', (_, raw, shown) => {
    expect(printable(raw)).toBe(shown)
  })

  test('two texts never look the same', () => {
    const text = fc.string({ unit: 'binary', maxLength: 30 })
    fc.assert(fc.property(text, text, (a, b) => a === b || printable(a) !== printable(b)))
  })

  test('long text is cut and says how long it was', () => {
    expect(printable('x'.repeat(1000), 10)).toBe('xxxxxxxxxx… (1000 characters)')
    expect(printable('🙂🙂', 3)).toBe('🙂\\ud83d… (4 characters)')
  })
})

describe('printableJson', () => {
  test('keeps every value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, indent) => {
        expect(JSON.parse(printableJson(value, indent))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  test('escapes what would control a terminal', () => {
    expect(printableJson({ a: '\u009b\u202e\u{e0041}\n' })).toBe('{"a":"\\u009b\\u202e\\udb40\\udc41\\n"}')
  })
})

test('P15 a hostile file name is one word of the command that a person copies, or is left out', () => {
  for (const text of [
    '/a/b.txt',
    '/a b',
    "/it's",
    '/x; touch y',
    '/$(id)`id`',
    '/a"b\\',
    '/-x',
    '/*?[a]~!#&|<>',
  ])
    expect(spawnSync('sh', ['-c', `printf '%s|' ${shellWord(text)}`]).stdout.toString()).toBe(`${text}|`)
  for (const text of ['', '/a\nid', '/a\x1b[2J', '/a\u202eb', '/ä', `/${'a'.repeat(600)}`])
    expect(shellWord(text)).toBeUndefined()
})

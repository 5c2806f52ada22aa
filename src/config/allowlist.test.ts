import { describe, expect, test } from 'bun:test'
import { PenError, showPlace } from '../base/error.ts'
import { MAX_ENTRIES, readAllowlist } from './allowlist.ts'

const read = (given: string | readonly number[]) =>
  readAllowlist(
    typeof given === 'string' ? new TextEncoder().encode(given) : Uint8Array.from(given),
    'list.txt',
  )
const shown = (text: string) => read(text).map(entry => `${entry.text} at ${showPlace(entry.place)}`)

describe('accepted', () => {
  const cases: [string, string, string[]][] = [
    ['an empty file has no entries', '', []],
    ['blank lines and comments say nothing', '\n  \n\t\n# x\n  # y\n#\n', []],
    ['each line is an entry', 'a:443\nb:80\n', ['a:443 at list.txt:1:1', 'b:80 at list.txt:2:1']],
    ['the last line needs no line feed', 'a:443\nb:80', ['a:443 at list.txt:1:1', 'b:80 at list.txt:2:1']],
    ['lines may end in CRLF', 'a:443\r\n\r\nb:80\r\n', ['a:443 at list.txt:1:1', 'b:80 at list.txt:3:1']],
    ['blanks around an entry are no part of it', ' \ta:443 \t\n', ['a:443 at list.txt:1:3']],
    [
      'a comment may follow an entry',
      'a:443 # why\nb:80\t#c',
      ['a:443 at list.txt:1:1', 'b:80 at list.txt:2:1'],
    ],
    ['a comment may hold anything that is seen', '# née 漢 ⚠️ # a b c\na:1', ['a:1 at list.txt:2:1']],
    ['a comment starts right at #', 'a:443 #b:443', ['a:443 at list.txt:1:1']],
    ['an entry that is commented out is not there', '#a:443\n # b:443', []],
    ['what an entry means is not judged here', '*.x..:0', ['*.x..:0 at list.txt:1:1']],
    ['equal entries are both kept', 'a:1\na:1', ['a:1 at list.txt:1:1', 'a:1 at list.txt:2:1']],
    ['addresses in brackets are words too', '[2001:db8::1]:443', ['[2001:db8::1]:443 at list.txt:1:1']],
  ]
  for (const [claim, text, entries] of cases) test(claim, () => expect(shown(text)).toEqual(entries))
})

describe('refused', () => {
  const cases: [string, string | readonly number[], RegExp, string][] = [
    ['two entries on a line', 'a:443 b:443', /white space inside/, '1:6'],
    ['a tab between words', 'x:1\na\tb # c', /white space inside/, '2:2'],
    ['a comment without a space before it', 'a:443#why', /# inside/, '1:6'],
    ['a # that looks like a fragment', '# ok\n  a#b:443', /# inside/, '2:4'],
    ['a name that is not ASCII', 'ok:1\nbücher.example:443', /U\+00FC is not ASCII/, '2:2'],
    ['a letter of another script', 'ex\u0430mple.com:443', /U\+0430 is not ASCII/, '1:3'],
    ['a no-break space after an entry', 'a:443\u00a0', /U\+00A0 is not ASCII/, '1:6'],
    ['a no-break space before a comment', 'a:443\u00a0# x', /U\+00A0 is not ASCII/, '1:6'],
    ['a zero-width space', 'a\u200b:443', /U\+200B is not ASCII/, '1:2'],
    ['an ideographic space as indent', '\u3000a:443', /U\+3000 is not ASCII/, '1:1'],
    ['a NUL', 'abc\0:443', /U\+0000 \(control/, '1:4'],
    ['an escape sequence in a comment', 'a:1 # \x1b[2K', /U\+001B \(control/, '1:7'],
    ['a bidirectional override in a comment', '# x \u202e y', /U\+202E \(bidirectional/, '1:5'],
    ['an override after a character of two units', 'a:1\n😀\u202e', /U\+202E/, '2:2'],
    ['a line separator, which some viewers break at', '# x\u2028a:443', /U\+2028/, '1:4'],
    ['a vertical tab or form feed as a line end', 'a:1\fb:1', /U\+000C/, '1:4'],
    ['a carriage return alone as a line end', 'a:1\rb:1', /carriage return/, '1:4'],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x61], /byte order mark/, '1:1'],
    ['a byte order mark inside', '\n\ufeffa:1', /U\+FEFF/, '2:1'],
    ['UTF-16', [0x61, 0, 0x3a, 0], /UTF-16/, '1:1'],
    ['a byte that is not UTF-8', [0x61, 0x0a, 0x23, 0xe9, 0x0a], /byte 4 \(0xe9\)/, '2:2'],
    ['a file of more than 64 KiB', '#'.repeat(65_537), /more than 65536/, '1:1'],
  ]
  for (const [claim, given, what, place] of cases)
    test(claim, () => {
      const error = refusalOf(given)
      expect(error.message).toMatch(what)
      expect(showPlace(error.at ?? '')).toBe(`list.txt:${place}`)
      expect(error.hint).toBeTruthy()
    })
})

test('64 KiB and 4096 entries are read, and the entry after them is refused with its line', () => {
  expect(read(`#${'x'.repeat(65_535)}`)).toEqual([])
  expect(read('a:1\n'.repeat(MAX_ENTRIES))).toHaveLength(4096)
  const error = refusalOf(`# top\n${'a:1\n'.repeat(MAX_ENTRIES)}\n  a:1`)
  expect(error.message).toBe('more than 4096 entries')
  expect(showPlace(error.at ?? '')).toBe('list.txt:4099:1')
})

function refusalOf(given: string | readonly number[]): PenError {
  try {
    read(given)
  } catch (error) {
    if (error instanceof PenError && error.code === 'CONFIG_SYNTAX') return error
    throw error
  }
  throw new Error('it was accepted')
}

import { expect, test } from 'bun:test'
import { PenError } from '../../src/base/error.ts'
import { type Entry, MAX_ENTRIES, readAllowlist } from '../../src/config/allowlist.ts'
import { Stopwatch } from '../stopwatch.ts'
import { expectPlaceInside } from './expect-place.ts'
import { fuzz } from './fuzz.ts'

/** An entry is a word of the file at its position. Nothing that a person sees as an entry is dropped. */
function check(input: Uint8Array): void {
  let entries: Entry[]
  try {
    entries = readAllowlist(input, 'http-allowlist.txt')
  } catch (error) {
    if (!(error instanceof PenError) || error.code !== 'CONFIG_SYNTAX') throw error
    expectPlaceInside(error, input)
    return
  }
  const lines = new TextDecoder('utf-8', { fatal: true }).decode(input).split('\n')
  const found = new Map(entries.map(entry => [entry.place.line, entry]))
  if (found.size !== entries.length || entries.length > MAX_ENTRIES) throw new Error('two entries on a line')
  lines.forEach((line, n) => {
    const word = /^[ \t]*([^\s#]\S*)[ \t]*(?:\r?$|[ \t]#)/.exec(line)?.[1]
    const entry = found.get(n + 1)
    if (entry?.text !== word) throw new Error(`line ${n + 1} reads as another entry`)
    if (entry === undefined) return
    if (!/^[!-~]+$/.test(entry.text) || entry.text.includes('#')) throw new Error('an entry is not one word')
    if (line.slice(entry.place.column - 1, entry.place.column - 1 + entry.text.length) !== entry.text)
      throw new Error('an entry is not at its position')
  })
}

fuzz('the allowlist reader gives one entry per line with its position, and refuses the rest with one', {
  seeds: [
    '# hosts\nregistry.example.com:443\n*.example.org:443 # all of them\n\n203.0.113.7:5432\n',
    'a.example.com:443\r\n\t b.example.com:80\t#x\r\n#y',
    'one.example.com',
    '',
    '# née 😀\n',
  ],
  dictionary: [
    ...[
      '#',
      ' #',
      '\t#',
      '\n',
      '\r\n',
      '\r',
      ' ',
      '\t',
      '\u00a0',
      '\u2028',
      '\u202e',
      '\u200b',
      '\0',
      '\x1b[2K',
    ],
    ...['\ufeff', 'é', '😀', ':443', 'a b', '*.'],
    Uint8Array.of(0xc0, 0x80),
    Uint8Array.of(0xff, 0xfe),
  ],
  run: check,
})

const SLOW: Record<string, string> = {
  'blanks inside a line': `a${' '.repeat(65_000)}b`,
  'blanks at the end of a line': `a${' \t'.repeat(32_000)}`,
  hashes: `a${'#'.repeat(65_000)}`,
  'hashes after blanks': ' #'.repeat(32_000),
  'empty lines': '\n'.repeat(65_536),
  'carriage returns': '\r\n'.repeat(32_768),
  'short entries': 'a\n'.repeat(32_768),
  'one long entry': 'a'.repeat(65_536),
}
for (const [name, text] of Object.entries(SLOW))
  test(`64 KiB of ${name} are answered at once`, () => {
    const input = new TextEncoder().encode(text)
    check(input)
    const watch = new Stopwatch()
    check(input)
    expect(watch.ms).toBeLessThan(100)
  })

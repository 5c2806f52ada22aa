import { describe, expect, test } from 'bun:test'
import { PenError } from '../../src/base/error.ts'
import { type JsonDocument, printJson, readJson } from '../../src/config/json/json.ts'
import { expectPlaceInside } from './expect-place.ts'
import { fuzz } from './fuzz.ts'

const CONFIG = `{
  "version": 1,
  "profile": "coding",
  "files": { "read": ["/usr/share/dict"], "deny": [".env*", "secrets/"] },
  "network": { "http": ["registry.example.com:443", "*.example.org:443"], "offline": false, "upstreamProxy": null },
  "limits": { "cpus": 1.5, "memory": "4GiB", "pids": 512 },
  "env": { "NAME": { "from": "host" } }
}
`

const SEEDS = [
  CONFIG,
  '{}',
  '[]',
  '[[[[]]],{"a":{"b":[]}}]',
  '"\\u00e9\\ud83d\\ude00\\/\\\\\\""',
  '[0,-1,9007199254740991,0.25,true,false,null]',
  '{"a":1,\r\n"b":"é😀"}\r\n',
]

const WORDS = [
  ...['{', '}', '[', ']', ',', ':', '"', '\\', '\n', '\r\n', '\r', '\t', '//x\n', '/*x*/', '#', "'"],
  ...[
    '\\u0000',
    '\\u0061',
    '"a":',
    '\\ud800',
    '\\udc00',
    '\\u202e',
    '\\n',
    '\u202e',
    '\ufeff',
    '\u00a0',
    '😀',
  ],
  ...[
    '-0',
    '1e400',
    '1E5',
    '4.43e2',
    '9007199254740993',
    '0.1',
    '00',
    '-',
    '+1',
    'NaN',
    'true',
    'nul',
    'null',
  ],
  ...['"__proto__":', '"constructor":', '"toString":1,', '"a":1,', '"1":1,'],
  Uint8Array.of(0xc0, 0xaf),
  Uint8Array.of(0xed, 0xa0, 0x80),
  Uint8Array.of(0xf4, 0x90, 0x80, 0x80),
  Uint8Array.of(0xff, 0xfe),
]

// Formatting makes a text longer than the file it was read from.
const ROOMY = { maxBytes: 2 ** 20 }

/** Accepts only what `JSON.parse` reads as the same value, and refuses only with a position inside the input. */
function check(input: Uint8Array): void {
  let document: JsonDocument
  try {
    document = readJson(input, 'config.json')
  } catch (error) {
    if (!(error instanceof PenError) || error.code !== 'CONFIG_SYNTAX') throw error
    expectPlaceInside(error, input)
    return
  }
  const text = new TextDecoder('utf-8', { fatal: true }).decode(input)
  const same = JSON.stringify(JSON.parse(text))
  if (JSON.stringify(document.value) !== same) throw new Error('JSON.parse reads another value')
  const printed = printJson(document.value, ROOMY)
  const again = readJson(new TextEncoder().encode(printed), 'config.json', ROOMY.maxBytes).value
  if (JSON.stringify(again) !== same) throw new Error('printing changed the value')
  if (printJson(again, ROOMY) !== printed) throw new Error('printing twice gives another text')
}

fuzz('the JSON reader agrees with JSON.parse on what it accepts, and refuses with a position', {
  seeds: SEEDS,
  dictionary: WORDS,
  run: check,
})

describe('64 KiB made to be slow are answered at once', () => {
  const fill = (part: string) => part.repeat(Math.ceil(65536 / part.length)).slice(0, 65536)
  const list = (open: string, count: number, item: (n: number) => string, close: string) =>
    open + Array.from({ length: count }, (_, n) => item(n)).join(',') + close
  const cases: Record<string, string> = {
    'open brackets': fill('['),
    'open objects': fill('{"a":'),
    'NUL escapes': `"${fill('\\u0000').slice(0, 65530)}"`,
    'plain escapes': `"${'\\u0061'.repeat(10_000)}"`,
    backslashes: `"${'\\\\'.repeat(32_000)}"`,
    'an open string': `"${'a'.repeat(65_000)}`,
    'many keys': list('{', 6000, n => `"k${n}":0`, '}'),
    'many integer keys': list('{', 6000, n => `"${n * 7}":0`, '}'),
    'a duplicate at the end of many keys': list('{', 6000, n => `"k${n % 5999}":0`, '}'),
    'many items': list('[', 32_000, () => '0', ']'),
    'many empty objects': list('[', 20_000, () => '{}', ']'),
    'zeros in a fraction': `0.${'0'.repeat(65_000)}1`,
    digits: fill('1'),
    'minus signs': fill('-'),
    'an exponent': `1e${'9'.repeat(65_000)}`,
    spaces: fill(' '),
    'line ends before garbage': `${fill('\r\n').slice(0, 65_000)}x`,
    'carriage returns': fill('\r'),
    'astral characters before an error': `"${'😀'.repeat(16_000)}\\u0000"`,
    letters: fill('a'),
    quotes: fill('"'),
    commas: `[${fill(',').slice(1)}`,
    slashes: fill('/'),
  }
  for (const [name, text] of Object.entries(cases))
    test(name, () => {
      const input = new TextEncoder().encode(text)
      expect(input.length).toBeLessThanOrEqual(65536)
      check(input)
      const times = Array.from({ length: 3 }, () => {
        // CPU time, not wall time: a busy machine is not a slow reader.
        const before = process.cpuUsage()
        check(input)
        const { user, system } = process.cpuUsage(before)
        return (user + system) / 1000
      })
      expect(Math.min(...times)).toBeLessThan(100)
    })
})

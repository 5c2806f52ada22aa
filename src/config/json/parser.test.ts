/**
 * The language, case by case: what every JSON reader accepts, and what this one refuses though others may not.
 * Cases are separated by | and grouped under a part of their error text. ^ marks the place in the error. <c0 af> are bytes in
 * hex, and <U+202E> is a character. The tables are ASCII, because Bun escapes other characters in a raw template.
 */
import { describe, expect, test } from 'bun:test'
import { PenError } from '../../base/error.ts'
import { readJson } from './json.ts'

const ACCEPTED = String.raw`
structure
  {} | [] | [[]] | {"a":{}} | [[],[[]]] | {"a":[],"b":{}} | {"":0} | {"a":1,"A":2} | ["a",["b"]]
  <20>[]<20> | [ ] | <09>[<0a>1<0d><0a>]<0a> | { "a" : 1 , "b" : 2 } | [1,2,3] | <0a><0a>{}<0a><0a>
  [null,true,false]
a lone value
  null | true | false | 0 | -1 | "" | " " | "x"
numbers
  [0] | [1] | [-1] | [10] | [443] | [65536] | [9007199254740991] | [-9007199254740991] | [1.5] | [0.25]
  [-0.5] | [2.0] | [1.50] | [0.0] | [100.0] | [0.000001] | [123.456]
strings
  ["a b"] | ["\""] | ["\\"] | ["\/"] | ["/"] | ["\u0041"] | ["\u00e9"] | ["\u00E9"] | ["<U+00E9>"]
  ["<U+6F22><U+5B57>"]
  ["<U+1F600>"] | ["\ud83d\ude00"] | ["\uD83D\uDE00"] | ["\u005c"] | ["\u0022"] | ["null"] | ["// no comment"]
  ["/* none */"] | ["# none"] | ["a,]"] | ["{\"a\":1}"] | ["<U+3000>"] | ["<U+FFFD>"] | ["\\u0000"]
  ["false"] | ["it's"] | ["~/x"] | ["<24>{X}"] | ["e<U+0301>"] | ["<U+10000>"]
edges of UTF-8
  "<c2 a1>" | "<df bf>" | "<e0 a0 80>" | "<ed 9f 86>" | "<ee 80 80>" | "<f0 90 80 80>" | "<f4 8f bf bd>"
keys
  {"a b":1} | {"<U+00E9>":1} | {"\u0061":1} | {"a":1,"b":1} | {"proto":1} | {"<24>schema":"x"} | {"1":1,"0":2}
`

const REFUSED = String.raw`
empty
  ^ | ^<20> | ^<0a><0a>
byte order mark
  ^<ef bb bf>{} | ^<ef bb bf>
UTF-16
  ^<ff fe>{<00>}<00> | ^<fe ff 00>{<00>} | ^{<00>}<00> | ^<00>{<00>} | ^<00 00 fe ff>
is not UTF-8
  "^<c0 af>" | "^<c1 81>" | "^<e0 80 af>" | "^<f0 80 80 af>" | "^<e0 9f bf>" | "^<f0 8f bf bf>"
  "ab^<ed a0 80>" | "ab^<ed bf bf>"
  "^<f4 90 80 80>" | "^<f5 80 80 80>" | "^<ff>" | "^<fc 80>"
  "^<80>" | "<c3 a9>^<bf>" | [<0a 20>^<a9>
  "^<c3>" | "^<e2 82>" | "^<f0 9f 98>" | "^<f0 9f> | "^<e9>"
comment
  ^// x<0a>{} | ^/* x */{} | {} ^// x | [1, ^/**/ 2] | ^# x<0a>{} | {"a":1,^#x<0a>"b":2} | {}^#
comma before
  [1^,] | {"a":1^,} | [1 ^, ] | [[]^,] | {"a":1^,<0a>}
comma where
  [^,] | [1,^,2] | [^,1] | {^,} | {"a":1,^,} | {"a":^,} | ^, | {}^,
quote of another kind
  {^'a':1} | [^'a'] | [^<60>a<60>] | [^<U+201C>a<U+201D>] | ^'a' | {^<U+201C>a<U+201D>:1}
the word a where a key in double quotes
  {^a:1} | {"b":1,^a:1} | {^a}
where a key in double quotes
  {^1:1} | {^null:1} | {^[]:1} | {"a":1 ,^2:2} | {^:1} | {^] | {^*}
where a colon
  {"a" ^1} | {"a"^} | {"a"^=1} | {"a"^;1} | {"a"^,"b"} | {"a" ^b} | {"a"^
where a comma or }
  {"a":1 ^"b":2} | {"a":1^] | {"a":1^:2} | {"a":"b"^/"c":1} | {"a":1^ | {"a":true ^false}
where a comma or ]
  [1 ^2] | [1^} | ["a"^:1] | [1^;2] | ["a" ^"b"] | [1^ | [[]^ | [""^x]
where a value
  [^ | {"a":^ | {"a":^} | [1,^ | ^] | ^} | ^* | [{"a":^] | [^<U+00E9>] | ^<xml/> | [^\u0041] | [^=]
where the end of the file
  {}^{} | []^] | 1 ^2 | {"a":1}^} | "a"^"b" | [] ^x
is not a value
  [^True] | [^FALSE] | [^Null] | [^None] | [^undefined] | [^NaN] | [^Infinity] | [^yes] | [^nul]
  [^truth] | [^true1] | [^null_] | [^falsey] | [^a] | [^TRUE]
leading zero
  [^01] | [^-01] | [^00] | [^012] | [^0443] | [^01.5] | [^+01]
exponent
  [^1e400] | [^4.43e2] | [^1E5] | [^0e1] | [^1e-2] | [^1e+2] | [^-1e1] | [^1e] | [^1.5e]
is not valid JSON
  [^+1] | [^.5] | [^1.] | [^-] | [^--1] | [^0x1F] | [^0o17] | [^0b1] | [^1_000] | [^-Infinity] | [^-NaN]
  [^1.2.3] | [^1-2] | [^-.5] | [^1a] | [^0.e1x] | [^.] | [^443n] | [^- 1] | [^1..2] | [^127.0.0.1]
minus zero
  [^-0] | [^-0.0] | ^-0
out of range
  [^9007199254740992] | [^9007199254740993] | [^-9007199254740992] | [^1000000000000000000000000000000]
rounded
  [^0.1000000000000000055] | [^1.00000000000000001] | [^0.0000001] | [^9007199254740990.5]
too long
  [^11111111111111111111111111111111111111111] | [^0.0000000000000000000000000000000000000001]
duplicate
  {"a":1,^"a":1} | {"a":1,^"\u0061":2} | {"":1,^"":1} | {"x":{"b":1,"c":2,^"b":3}} | {"<U+00E9>":1,^"\u00e9":1}
  {"toString":1,^"toString":2}
never allowed
  {^"__proto__":{"allowAll":true}} | {"a":{^"constructor":{"prototype":1}}} | {^"prototype":1}
  {^"\u005f_proto__":1}
does not end
  ^" | ^"abc | [^"a<0a>b"] | [^"a<0d><0a>b"] | [^"a] | {"a":^"b} | ^"\" | [^"a<0a>"]
starts no JSON escape
  ["^\x41"] | ["^\a"] | ["^\'"] | ["^\0"] | ["^\u12"] | ["^\u{41}"] | ["^\uXYZW"] | ["^\U0041"] | ["^\
  ["^\<U+00E9>"] | ["^\u"] | ["^\ "] | ["^\u+123"]
U+0000 (control character) in a string
  ["^\u0000"] | ["a^\u0000b"] | ["ab^<00>"] | {"^\u0000":1}
control character) in a string
  ["^<09>"] | ["^<1b>[2J"] | ["^<7f>"] | ["^<U+0085>"] | ["^\n"] | ["^\t"] | ["^\r"] | ["^\b"] | ["^\f"]
  ["^\u001b"] | ["^\u009b"]
surrogate pair) in a string
  ["^\ud800"] | ["^\udc00"] | ["^\ud800\ud800"] | ["^\udc00\ud800"] | ["^\ud800x"] | ["^\uDADA"]
  ["^\ud800\n"] | ["^\ud800\u0041"]
bidirectional control) in a string
  ["^<U+202E>"] | ["^\u202e"] | ["^<U+2066>"] | ["^<U+200F>"] | ["^<U+061C>"] | ["^\u2069"]
invisible character) in a string
  ["^<U+200B>"] | ["^<U+200D>"] | ["^<U+00AD>"] | ["^<U+2060>"] | ["^<U+FEFF>"] | ["^<U+E0041>"]
  ["^<U+FE0F>"] | ["^<U+3164>"] | ["^\udb40\udc41"] | ["^\ufeff"]
looks like a space) in a string
  ["^<U+00A0>"] | ["^\u00a0"] | ["^<U+2003>"] | ["^<U+2028>"] | ["^<U+2029>"] | ["^<U+202F>"]
  ["^<U+2800>"]
not a character) in a string
  ["^\uffff"] | ["^<U+FFFE>"] | ["^<U+1FFFF>"] | ["^\ufdd0"]
between values
  [^<U+00A0>1] | {^<U+200B>} | [^<U+2028>] | [1^<0c>] | [^<0b>] | {}^<00> | [^<U+0085>] | [^<U+FEFF>]
  [1]^<1a>
without a line feed
  [^<0d>] | {}^<0d> | [1,^<0d>2] | "a^<0d>b"
`

describe('accepted, with the value that JSON.parse gives', () => {
  for (const [kind, given] of casesOf(ACCEPTED))
    test(`${kind}: ${given}`, () => {
      const input = bytes(given)
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(input)
      expect(JSON.stringify(readJson(input, 'config.json').value)).toBe(JSON.stringify(JSON.parse(text)))
    })
})

describe('refused, at the place that is marked', () => {
  for (const [why, given] of casesOf(REFUSED))
    test(`${why}: ${given}`, () => {
      const error = refusalOf(bytes(given.replace('^', '')))
      const before = Buffer.from(bytes(given.slice(0, given.indexOf('^'))))
        .toString('utf8')
        .split('\n')
      const column = [...(before.at(-1) ?? '')].length + 1
      expect(error.message).toContain(why)
      expect(error.at).toEqual({ file: 'config.json', line: before.length, column })
      expect(error.hint).toBeTruthy()
    })
})

test('each usual slip has its own fix', () => {
  const fixes: Record<string, string> = {
    '{} // x': 'JSON has no comments: delete it',
    "['a']": 'strings take double quotes: "…"',
    '[True]': 'write true',
    '[None]': 'write null',
    '[web]': 'write "web" if it is a string',
    '[1,]': 'delete the last comma',
    '{a:1}': 'write a key in double quotes',
    '{"a"=1}': 'write a colon',
    '{} {}': 'delete what follows the document',
    '["C:\\x"]': 'write \\\\ for a backslash',
    '[1e3]': 'write all digits',
  }
  for (const [text, fix] of Object.entries(fixes)) expect(refusalOf(bytes(text)).hint).toBe(fix)
})

test('one bad byte anywhere refuses the whole document', () => {
  const good = [...bytes('{"network": {"http": ["a.example.com:443"]}, "version": 1}')]
  expect(readJson(Uint8Array.from(good), 'config.json').value).toBeTruthy()
  for (let i = 0; i < good.length; i++)
    expect(refusalOf(Uint8Array.from(good.toSpliced(i, 1, 0xff))).code).toBe('CONFIG_SYNTAX')
})

function refusalOf(input: Uint8Array): PenError {
  try {
    readJson(input, 'config.json')
  } catch (error) {
    if (error instanceof PenError && error.code === 'CONFIG_SYNTAX') return error
    throw error
  }
  throw new Error('it was accepted')
}

function casesOf(table: string): [string, string][] {
  let group = ''
  return table
    .split('\n')
    .filter(line => line !== '')
    .flatMap(line => {
      if (line.startsWith('  ')) return line.split('|').map((one): [string, string] => [group, one.trim()])
      group = line
      return []
    })
}

function bytes(notation: string): Uint8Array {
  const parts = notation.split(/<(U\+[0-9A-F]+|[0-9a-f]{2}(?: [0-9a-f]{2})*)>/)
  return Buffer.concat(
    parts.map((part, n) => {
      if (n % 2 === 0) return Buffer.from(part)
      if (part.startsWith('U+')) return Buffer.from(String.fromCodePoint(Number.parseInt(part.slice(2), 16)))
      return Buffer.from(part.replaceAll(' ', ''), 'hex')
    }),
  )
}

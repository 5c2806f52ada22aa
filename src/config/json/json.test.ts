import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import * as v from 'valibot'
import { PenError, showPlace } from '../../base/error.ts'
import { type JsonValue, printJson, readJson } from './json.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const read = (text: string, maxBytes?: number) => readJson(bytes(text), 'config.json', maxBytes)

function errorOf(action: () => unknown): PenError {
  try {
    action()
  } catch (error) {
    if (error instanceof PenError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('values', () => {
  test('a document is read as JSON.parse reads it', () => {
    const text = '{"a": [1, -2, 0.5, "x\\u00e9\\"\\/", true, false, null, {}, []], "b": {"c": "d"}}'
    expect(JSON.stringify(read(text).value)).toBe(JSON.stringify(JSON.parse(text)))
  })

  test('an object has no inherited keys', () => {
    const value = read('{"a": 1}').value
    expect(Object.getPrototypeOf(value)).toBeNull()
    expect(Object.keys(value ?? {})).toEqual(['a'])
  })

  test('toString and hasOwnProperty are keys like any other', () => {
    expect(JSON.stringify(read('{"toString": 1, "hasOwnProperty": 2}').value)).toBe(
      '{"toString":1,"hasOwnProperty":2}',
    )
  })

  test('a strict schema accepts what is read and refuses an unknown key', () => {
    const schema = v.strictObject({ env: v.record(v.string(), v.strictObject({ from: v.literal('host') })) })
    expect(v.safeParse(schema, read('{"env": {"A": {"from": "host"}}}').value).success).toBe(true)
    expect(v.safeParse(schema, read('{"env": {}, "enw": {}}').value).success).toBe(false)
    expect(v.safeParse(schema, read('{"env": {"A": 1}}').value).success).toBe(false)
  })
})

describe('places', () => {
  const text = '{\r\n  "net": {\r\n    "http": ["a", "b"],\r\n    "😀é": { "x": 1 }\r\n  }\r\n}'
  const document = read(text)
  const cases: [(string | number)[], string, string][] = [
    [[], '1:1', '1:1'],
    [['net'], '2:10', '2:3'],
    [['net', 'http'], '3:13', '3:5'],
    [['net', 'http', 0], '3:14', '3:14'],
    [['net', 'http', 1], '3:19', '3:19'],
    [['net', '😀é', 'x'], '4:18', '4:13'],
    [['net', 'http', 2], '3:13', '3:5'],
    [['net', 'tcp', 0, 'x'], '2:10', '2:3'],
    [['length'], '1:1', '1:1'],
  ]
  for (const [path, value, key] of cases)
    test(`${JSON.stringify(path)} is at ${value}, its key at ${key}`, () => {
      expect(showPlace(document.placeOf(path))).toBe(`config.json:${value}`)
      expect(showPlace(document.keyPlaceOf(path))).toBe(`config.json:${key}`)
    })

  test('columns count code points after characters of two units', () => {
    expect(errorOf(() => read('["😀😀", x]')).at).toEqual({ file: 'config.json', line: 1, column: 8 })
  })

  test('the second of two equal keys is the one that is shown, with the line of the first', () => {
    const error = errorOf(() => read('{\n "network": "deny",\n "net\\u0077ork": "allow"\n}'))
    expect(error.at).toEqual({ file: 'config.json', line: 3, column: 2 })
    expect(error.message).toBe('the key "network" is a duplicate')
    expect(error.hint).toContain('line 2, column 2')
  })

  test('the same key in two objects is no duplicate', () => {
    expect(JSON.stringify(read('{"a": {"k": 1}, "b": {"k": 2}}').value)).toBe('{"a":{"k":1},"b":{"k":2}}')
  })
})

describe('limits', () => {
  const nest = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  const objects = (depth: number) => `${'{"a":'.repeat(depth)}0${'}'.repeat(depth)}`

  test('32 levels are read, and the 33rd is refused where it opens', () => {
    expect(JSON.stringify(read(nest(32)).value)).toBe(nest(32))
    expect(JSON.stringify(read(objects(32)).value)).toBe(objects(32))
    expect(errorOf(() => read(nest(33))).at).toMatchObject({ line: 1, column: 33 })
    expect(errorOf(() => read(objects(33))).message).toBe('nested deeper than 32 levels')
  })

  test('levels count nesting, not how many arrays there are', () => {
    expect(read(`[${Array(100).fill('[]').join()}]`).value).toHaveLength(100)
  })

  test('a million levels are refused like any file that is too large', () => {
    expect(errorOf(() => read('['.repeat(1_000_000))).message).toContain('more than 65536')
    expect(errorOf(() => read('['.repeat(1_000_000), 2 ** 20)).message).toContain('nested deeper')
  })

  test('65536 bytes are read, and one more is refused', () => {
    const text = `"${'a'.repeat(65_534)}"`
    expect(read(text).value).toHaveLength(65_534)
    expect(errorOf(() => read(`${text} `)).message).toBe('the file has 65537 bytes, more than 65536')
  })

  test('the limit is counted in bytes, and can be set', () => {
    expect(read('"é"', 4).value).toBe('é')
    expect(errorOf(() => read('"é"', 3)).code).toBe('CONFIG_SYNTAX')
  })
})

test('an error never carries the text of the file raw or at length', () => {
  const hostile = [
    '{"\u001b[2J":1}',
    `{${'x'.repeat(9999)}: 1}`,
    '[\u202e]',
    '["a" \u0301]',
    `[1${'0'.repeat(9999)}]`,
  ]
  const long = `"${'k'.repeat(9999)}": 0`
  for (const text of [...hostile, `{${long}, ${long}}`]) {
    const error = errorOf(() => read(text))
    expect(`${error.message}${error.hint}`).toMatch(/^[ -~…]{1,300}$/)
  }
})

describe('printing', () => {
  test('the layout is two spaces and a final line feed', () => {
    expect(printJson({ a: [1, 'x'], b: {}, c: [] })).toBe(
      '{\n  "a": [\n    1,\n    "x"\n  ],\n  "b": {},\n  "c": []\n}\n',
    )
  })

  const text = fc.string({ unit: fc.constantFrom(...'aZ0 /\\"\'é漢😀{}[]:,#') })
  const key = text.filter(k => !['__proto__', 'constructor', 'prototype'].includes(k))
  const number = fc.oneof(
    fc.maxSafeInteger(),
    fc.integer({ min: -99_999, max: 99_999 }).map(n => n / 100),
  )
  const { value } = fc.letrec<{ value: JsonValue }>(tie => ({
    value: fc.oneof(
      { maxDepth: 5 },
      text,
      number.map(n => (n === 0 ? 0 : n)),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.dictionary(key, tie('value'), { maxKeys: 5, noNullPrototype: false }),
    ),
  }))

  test('what is printed is read again as the same value', () => {
    fc.assert(
      fc.property(value, given => {
        const printed = printJson(given, { maxBytes: 2 ** 20 })
        const again = read(printed, 2 ** 20).value
        expect(JSON.stringify(again)).toBe(JSON.stringify(given))
        expect(printJson(again, { maxBytes: 2 ** 20 })).toBe(printed)
      }),
      { numRuns: 300 },
    )
  })

  const deep = (levels: number): JsonValue => (levels === 0 ? 0 : [deep(levels - 1)])
  const unreadable: [string, JsonValue][] = [
    ['NaN', Number.NaN],
    ['infinity', [Number.POSITIVE_INFINITY]],
    ['minus zero', { a: -0 }],
    ['a hole in an array', Array<JsonValue>(2)],
    ['an unsafe integer', 2 ** 53],
    ['a number with an exponent', 1e-9],
    ['a string with a line feed', 'a\nb'],
    ['a lone surrogate', '\ud800'],
    ['a polluting key', JSON.parse('{"__proto__": 1}')],
    ['33 levels', deep(33)],
    ['70,000 bytes', 'a'.repeat(70_000)],
  ]
  for (const [name, given] of unreadable)
    test(`${name} is not printed, as it could not be read again`, () => {
      expect(errorOf(() => printJson(given)).code).toBe('CONFIG_VALUE')
    })

  test('32 levels and 60,000 bytes are printed', () => {
    expect(printJson(deep(32))).toContain('0')
    expect(printJson('a'.repeat(60_000))).toHaveLength(60_003)
  })
})

/** The grammar of strict JSON, over text that `decodeText` checked. `maxDepth` bounds the recursion. */
import { printable } from '../../base/printable.ts'
import { findHidden, nameHidden } from '../hidden.ts'
import type { JsonValue } from './json.ts'
import type { SourceText } from './source-text.ts'
import { END, readNumber, unexpected } from './token.ts'

/** A value and its offset. */
export interface JsonNode {
  readonly value: JsonValue
  readonly at: number
  readonly keyAt: number | undefined
  /** Children by key or index; undefined for a scalar. */
  readonly parts: ReadonlyMap<string, JsonNode> | readonly JsonNode[] | undefined
}

export const parseJson = (source: SourceText, maxDepth: number): JsonNode =>
  new Parser(source, maxDepth).document()

// Copying such a key into an ordinary object would pollute its prototype.
const POLLUTING = new Set(['__proto__', 'constructor', 'prototype'])

const SPACE = /[ \t\n\r]*/y
const RUN = /[^"\\\n\r]*/y
/** The fast path for most strings. It halves the time of a cold start. */
const PLAIN_STRING = /^[ !#-[\]-~]*$/
const NUMBER = /[-+.0-9][-+.0-9A-Za-z_]*/y
const WORD = /true(?![\w$])|false(?![\w$])|null(?![\w$])/y
const UNICODE_ESCAPE = /\\u([0-9A-Fa-f]{4})/y

class Parser {
  readonly #source: SourceText
  readonly #text: string
  readonly #maxDepth: number
  #at = 0

  constructor(source: SourceText, maxDepth: number) {
    this.#source = source
    this.#text = source.text
    this.#maxDepth = maxDepth
  }

  document(): JsonNode {
    this.#skip()
    if (this.#at === this.#text.length)
      throw this.#source.refusal(0, 'the file is empty', 'write {} for an empty document')
    const root = this.#value(0)
    this.#skip()
    if (this.#at < this.#text.length) throw unexpected(this.#source, this.#at, END)
    return root
  }

  #value(depth: number, keyAt?: number): JsonNode {
    const at = this.#at
    const leaf = (value: JsonValue): JsonNode => ({ value, at, keyAt, parts: undefined })
    const first = this.#text[at]
    if (first === '{') return this.#object(depth + 1, keyAt)
    if (first === '[') return this.#array(depth + 1, keyAt)
    if (first === '"') return leaf(this.#string())
    const number = this.#match(NUMBER)
    if (number !== '') return leaf(readNumber(this.#source, at, number))
    const word = this.#match(WORD)
    if (word !== '') return leaf(word === 'null' ? null : word === 'true')
    throw unexpected(this.#source, at, 'a value')
  }

  #object(depth: number, keyAt: number | undefined): JsonNode {
    const at = this.#open(depth)
    const value: Record<string, JsonValue> = Object.create(null)
    const parts = new Map<string, JsonNode>()
    if (this.#take('}')) return { value, at, keyAt, parts }
    do {
      const start = this.#at
      const key = this.#key(parts)
      this.#skip()
      if (!this.#take(':')) throw unexpected(this.#source, this.#at, 'a colon')
      this.#skip()
      const node = this.#value(depth, start)
      parts.set(key, node)
      value[key] = node.value
    } while (this.#more('}'))
    return { value, at, keyAt, parts }
  }

  #array(depth: number, keyAt: number | undefined): JsonNode {
    const at = this.#open(depth)
    const value: JsonValue[] = []
    const parts: JsonNode[] = []
    if (this.#take(']')) return { value, at, keyAt, parts }
    do {
      const node = this.#value(depth)
      parts.push(node)
      value.push(node.value)
    } while (this.#more(']'))
    return { value, at, keyAt, parts }
  }

  #open(depth: number): number {
    const at = this.#at++
    if (depth > this.#maxDepth)
      throw this.#source.refusal(at, `nested deeper than ${this.#maxDepth} levels`, 'make it flatter')
    this.#skip()
    return at
  }

  /** After a member: true at a comma with another member behind it, false at the end. */
  #more(close: '}' | ']'): boolean {
    this.#skip()
    if (this.#take(close)) return false
    const comma = this.#at
    if (!this.#take(',')) throw unexpected(this.#source, this.#at, `a comma or ${close}`)
    this.#skip()
    if (this.#text[this.#at] === close)
      throw this.#source.refusal(comma, `a comma before ${close}`, 'delete the last comma')
    return true
  }

  #key(known: ReadonlyMap<string, JsonNode>): string {
    const at = this.#at
    if (this.#text[at] !== '"') throw unexpected(this.#source, at, 'a key in double quotes')
    const key = this.#string()
    if (POLLUTING.has(key))
      throw this.#source.refusal(at, `the key ${key} is never allowed`, 'delete it, or choose another name')
    const first = known.get(key)?.keyAt
    if (first === undefined) return key
    const { line, column } = this.#source.placeAt(first)
    const what = `the key "${printable(key, 60)}" is a duplicate`
    throw this.#source.refusal(at, what, `keep one; the first is at line ${line}, column ${column}`)
  }

  #string(): string {
    const open = this.#at++
    const close = this.#text.indexOf('"', this.#at)
    const plain = this.#text.slice(this.#at, Math.max(close, this.#at))
    if (close !== -1 && PLAIN_STRING.test(plain)) {
      this.#at = close + 1
      return plain
    }
    let value = ''
    for (;;) {
      const start = this.#at
      const run = this.#match(RUN)
      const hidden = findHidden(run)
      if (hidden >= 0) throw this.#hidden(start + hidden, nameHidden(run, hidden))
      value += run
      const next = this.#text[this.#at]
      if (next === '\\') value += this.#escape()
      else if (next !== '"')
        throw this.#source.refusal(
          open,
          'this string does not end on its line',
          'close it with a double quote',
        )
      else {
        this.#at++
        return value
      }
    }
  }

  #escape(): string {
    const at = this.#at
    const letter = this.#text[at + 1] ?? ''
    if (letter === '"' || letter === '\\' || letter === '/') {
      this.#at += 2
      return letter
    }
    if (letter !== '' && 'bfnrt'.includes(letter)) throw this.#hidden(at, `\\${letter} (control character)`)
    const unit = this.#unit()
    if (unit === undefined)
      throw this.#source.refusal(at, 'a backslash that starts no JSON escape', 'write \\\\ for a backslash')
    let char = String.fromCharCode(unit)
    if (unit >= 0xd800 && unit <= 0xdbff) {
      const low = this.#unit() ?? 0
      if (low >= 0xdc00 && low <= 0xdfff) char += String.fromCharCode(low)
    }
    if (findHidden(char) >= 0) throw this.#hidden(at, nameHidden(char, 0))
    return char
  }

  #unit(): number | undefined {
    const digits = this.#match(UNICODE_ESCAPE).slice(2)
    return digits === '' ? undefined : Number.parseInt(digits, 16)
  }

  #hidden = (at: number, name: string) =>
    this.#source.refusal(at, `${name} in a string`, 'delete it: strings hold visible characters only')

  #skip(): void {
    if ((this.#text[this.#at] ?? '') <= ' ') this.#match(SPACE)
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  #match(sticky: RegExp): string {
    sticky.lastIndex = this.#at
    if (!sticky.test(this.#text)) return ''
    const start = this.#at
    this.#at = sticky.lastIndex
    return this.#text.slice(start, this.#at)
  }
}

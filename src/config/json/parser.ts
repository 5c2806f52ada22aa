/** The grammar of strict JSON, over text that `decodeText` checked. `MAX_DEPTH` bounds the recursion. */
import { printable } from '../../base/printable.ts'
import { findHidden, nameHidden } from '../hidden.ts'
import type { JsonValue } from './json.ts'
import type { SourceText } from './source-text.ts'
import { END, readNumber, unexpected } from './token.ts'

/** A value and its offset. */
export interface JsonNode {
  readonly value: JsonValue
  readonly at: number
  /** The offset of its key. For a value without a key, that of the value. */
  readonly keyAt: number
  /** Children by key or index; undefined for a scalar. */
  readonly parts?: ReadonlyMap<string | number, JsonNode>
}

export const parseJson = (source: SourceText): JsonNode => new Parser(source).document()

const MAX_DEPTH = 32

// Copying such a key into an ordinary object would pollute its prototype.
const POLLUTING = new Set(['__proto__', 'constructor', 'prototype'])

const SPACE = /[ \t\n\r]*/y
/** Text without escapes, or one escape. A backslash alone starts no valid escape. */
const PIECE =
  /[^"\\\n\r]+|\\(?:["\\/bfnrt]|u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})?/y
/** Most strings. They need no further checks, which would be slow on a cold start. */
const PLAIN_STRING = /"[ !#-[\]-~]*"/y
const NUMBER = /[-+.0-9][-+.0-9A-Za-z_]*/y
const WORD = /true(?![\w$])|false(?![\w$])|null(?![\w$])/y

class Parser {
  readonly #source: SourceText
  readonly #text: string
  #at = 0

  constructor(source: SourceText) {
    this.#source = source
    this.#text = source.text
  }

  document(): JsonNode {
    this.#skip()
    if (this.#at === this.#text.length)
      throw this.#source.refusal(0, 'the file is empty', 'write {} for an empty document')
    const root = this.#value(0, this.#at)
    this.#skip()
    if (this.#at < this.#text.length) throw unexpected(this.#source, this.#at, END)
    return root
  }

  #value(depth: number, keyAt: number): JsonNode {
    const at = this.#at
    const first = this.#text[at]
    if (first === '{' || first === '[') return this.#container(first === '{' ? '}' : ']', depth + 1, keyAt)
    if (first === '"') return { value: this.#string(), at, keyAt }
    const number = this.#match(NUMBER)
    if (number !== '') return { value: readNumber(this.#source, at, number), at, keyAt }
    const word = this.#match(WORD)
    if (word !== '') return { value: word === 'null' ? null : word === 'true', at, keyAt }
    throw unexpected(this.#source, at, 'a value')
  }

  #container(close: '}' | ']', depth: number, keyAt: number): JsonNode {
    const at = this.#at++
    if (depth > MAX_DEPTH)
      throw this.#source.refusal(at, `nested deeper than ${MAX_DEPTH} levels`, 'make it flatter')
    this.#skip()
    const parts = new Map<string | number, JsonNode>()
    if (!this.#take(close))
      do {
        const start = this.#at
        const key = close === '}' ? this.#key(parts) : parts.size
        parts.set(key, this.#value(depth, start))
      } while (this.#more(close))
    if (close === ']') return { value: Array.from(parts.values(), part => part.value), at, keyAt, parts }
    const value: Record<string, JsonValue> = Object.create(null)
    for (const [key, part] of parts) value[key] = part.value
    return { value, at, keyAt, parts }
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

  /** A key and its colon. */
  #key(known: ReadonlyMap<string | number, JsonNode>): string {
    const at = this.#at
    if (this.#text[at] !== '"') throw unexpected(this.#source, at, 'a key in double quotes')
    const key = this.#string()
    if (POLLUTING.has(key))
      throw this.#source.refusal(at, `the key ${key} is never allowed`, 'delete it, or choose another name')
    const first = known.get(key)
    if (first !== undefined) {
      const { line, column } = this.#source.placeAt(first.keyAt)
      const what = `the key "${printable(key, 60)}" is a duplicate`
      throw this.#source.refusal(at, what, `keep one; the first is at line ${line}, column ${column}`)
    }
    this.#skip()
    if (!this.#take(':')) throw unexpected(this.#source, this.#at, 'a colon')
    this.#skip()
    return key
  }

  /** Checks every piece, then lets `JSON.parse` decode the whole string. */
  #string(): string {
    const plain = this.#match(PLAIN_STRING)
    if (plain !== '') return plain.slice(1, -1)
    const open = this.#at++
    for (;;) {
      const at = this.#at
      const piece = this.#match(PIECE)
      if (piece === '') break
      this.#checkPiece(piece, at)
    }
    if (!this.#take('"'))
      throw this.#source.refusal(open, 'this string does not end on its line', 'close it with a double quote')
    return JSON.parse(this.#text.slice(open, this.#at))
  }

  #checkPiece(piece: string, at: number): void {
    const isEscape = piece.startsWith('\\')
    if (piece === '\\')
      throw this.#source.refusal(at, 'a backslash that starts no JSON escape', 'write \\\\ for a backslash')
    if (/^\\[bfnrt]/.test(piece)) throw this.#hidden(at, `${piece} (control character)`)
    const shown: string = isEscape ? JSON.parse(`"${piece}"`) : piece
    const hidden = findHidden(shown)
    if (hidden >= 0) throw this.#hidden(isEscape ? at : at + hidden, nameHidden(shown, hidden))
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

/** Number syntax, and error texts for everything that is not JSON. */
import type { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { codePoint, findHidden, nameHidden } from '../hidden.ts'
import type { SourceText } from './source-text.ts'

const DECIMAL = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/

/** Accepts only a number that every reader interprets the same way: no exponent, no rounding, no minus zero. */
export function readNumber(source: SourceText, at: number, token: string): number {
  const refuse = (why: string, hint: string) =>
    source.refusal(at, `the number ${printable(token, 40)} ${why}`, hint)
  if (token.length > 40) throw refuse('is too long', 'write fewer digits')
  if (!DECIMAL.test(token)) {
    if (/^[-+]?0[0-9]/.test(token)) throw refuse('has a leading zero', 'write it without')
    if (/^[-+]?[0-9]*\.?[0-9]*[eE][-+]?[0-9]*$/.test(token))
      throw refuse('has an exponent', 'write all digits')
    throw refuse('is not valid JSON', 'write digits only, like 512 or 1.5')
  }
  const value = Number(token)
  if (Object.is(value, -0)) throw refuse('is minus zero', 'write 0')
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER)
    throw refuse('is out of range', `keep it within ${Number.MAX_SAFE_INTEGER}`)
  const digits = token.includes('.') ? token.replace(/\.?0+$/, '') : token
  if (String(value) !== digits) throw refuse('would be rounded', `write fewer digits after the point`)
  return value
}

/** The text of `unexpected` for the end of the file. */
export const END = 'the end of the file'

/** The error for a character in place of `wanted`, with a fix for the usual causes. */
export function unexpected(source: SourceText, at: number, wanted: string): PenError {
  const { text } = source
  const char = String.fromCodePoint(text.codePointAt(at) ?? 0)
  const refuse = (what: string, hint: string) => source.refusal(at, what, hint)
  const fix = wanted === END ? 'delete what follows the document' : `write ${wanted}`
  if (at >= text.length) return refuse(`the file ends where ${wanted} should be`, fix)
  if (char === '#' || text.startsWith('//', at) || text.startsWith('/*', at))
    return refuse('a comment', 'JSON has no comments: delete it')
  if ("'`‘’“”„«»".includes(char)) return refuse('a quote of another kind', 'strings take double quotes: "…"')
  if (char === ',') return refuse(`a comma where ${wanted} should be`, 'delete the comma')
  if (findHidden(char) === 0) return refuse(`${nameHidden(char, 0)} between values`, 'delete it')

  const word = /^[A-Za-z_$][\w$]*/.exec(text.slice(at, at + 80))?.[0]
  const shownChar = char === '"' ? 'a string' : char > '~' ? codePoint(char, 0) : `"${char}"`
  if (word === undefined) return refuse(`${shownChar} where ${wanted} should be`, fix)
  const shown = `the word ${printable(word, 40)}`
  if (wanted !== 'a value') return refuse(`${shown} where ${wanted} should be`, fix)
  const literal = LITERALS.get(word.toLowerCase())
  return refuse(`${shown} is not a value`, literal ?? `write "${printable(word, 40)}" if it is a string`)
}

const LITERALS: ReadonlyMap<string, string> = new Map([
  ['true', 'write true'],
  ['false', 'write false'],
  ['yes', 'write true'],
  ['no', 'write false'],
  ['null', 'write null'],
  ['none', 'write null'],
  ['nil', 'write null'],
  ['undefined', 'write null, or delete the key'],
  ['nan', 'write a number'],
  ['infinity', 'write a number'],
])

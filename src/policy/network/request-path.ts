/**
 * One form for every path of a request. Servers decode, fold and merge paths differently, and the path is hostile. What
 * two servers could read as two paths is refused or brought into one form, and the gateway sends that form.
 */
import { type Parsed, refuse } from '../source.ts'

export interface RequestPath {
  /** Compared with allow rules, and sent. */
  readonly exact: string
  /** Every path that a server may read from it, compared with deny rules. */
  readonly readings: readonly string[]
  /** With its question mark, or empty. */
  readonly query: string
}

/** `target` is the path and query of a request. */
export function readRequestPath(target: string): Parsed<RequestPath> {
  const mark = target.indexOf('?')
  const written = mark === -1 ? target : target.slice(0, mark)
  const path = normalizePath(written)
  if (!path.ok) return path
  return { ok: true, value: { ...path.value, query: mark === -1 ? '' : target.slice(mark) } }
}

export function normalizePath(written: string): Parsed<Omit<RequestPath, 'query'>> {
  // OPTIONS for the server as a whole.
  if (written === '*') return { ok: true, value: { exact: '*', readings: ['/'] } }
  if (/[^\x21-\x7e]/.test(written)) return refuse('the path has a character that must be encoded')
  if (/%(?![0-9A-Fa-f]{2})/.test(written)) return refuse('the path has a malformed percent sign')
  // `%00` ends the path for some servers, and other control characters are dropped by some.
  if (/%(?:[01][0-9A-F]|7F)/i.test(written)) return refuse('the path has an encoded control character')
  if (/\\|%5C/i.test(written)) return refuse('the path has a backslash')
  if (OVERLONG.test(written)) return refuse('the path has bytes that are no UTF-8')
  const exact = written
    .replaceAll(/%[0-9A-Fa-f]{2}/g, code => {
      const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase()
    })
    .replaceAll(/\/{2,}/g, '/')
  // Some servers decode twice.
  if (/%25[0-9A-F]{2}/i.test(exact)) return refuse('the path is encoded twice')
  // A server that decodes early may see the end of the path in each of these characters.
  const readings = decodings(exact)
    .flatMap(text => (/[?#]/.test(text) ? [text, cutAt(/[?#]/, text)] : [text]))
    .flatMap(text => (text.includes(';') ? [withoutParameters(text), cutAt(/;/, text)] : [text]))
  if (readings.some(hasDotSegment)) return refuse('the path has a dot segment')
  return { ok: true, value: { exact, readings: [...new Set(readings.map(fold))] } }
}

/** A pattern of a deny rule, as its readings are compared. Its path is in the exact form. */
export const patternReadings = (pattern: string): readonly string[] =>
  decodings(pattern).map(withoutParameters).map(fold)

/** Encodings that are longer than needed. Lenient servers read a slash or a dot from them. */
const OVERLONG = /%(?:C[01]|E0%[89]|(?:F0|F8|FC)%8)/i
/** In place of an encoded slash that stays a part of its segment. No path has it: control characters are refused. */
const KEPT_SLASH = '%0A'

/** A server may decode an encoded slash before or after it splits the path. Some fold other forms of a letter. */
const decodings = (exact: string): string[] =>
  exact.includes('%')
    ? [exact, exact.replaceAll('%2F', KEPT_SLASH)].map(text => decoded(text).normalize('NFKC'))
    : [exact]

const decoded = (path: string): string =>
  Buffer.from(
    path.replaceAll(/%([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
    'latin1',
  ).toString('utf8')

const withoutParameters = (text: string): string => text.replaceAll(/;[^/]*/g, '')

const cutAt = (end: RegExp, text: string): string => text.slice(0, text.search(end))

const hasDotSegment = (text: string): boolean =>
  text.split('/').some(segment => segment.trimEnd() === '.' || segment.trimEnd() === '..')

/** Without case, without dots and spaces at the end of a segment, without empty segments. */
const fold = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[. ]+(?=\/|$)/g, '')
    .replaceAll(/\/{2,}/g, '/')
    .replace(/(.)\/$/s, '$1')

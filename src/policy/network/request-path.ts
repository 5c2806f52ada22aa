/**
 * One form for every path of a request. Servers decode, fold and merge paths differently, and the path is hostile. What
 * two servers could read as two paths is refused or brought into one form, and the gateway sends that form.
 */
import { type Parsed, refuse } from '../source.ts'

export interface RequestPath {
  /** Compared with allow rules, and sent. */
  readonly exact: string
  /** Compared with deny rules: decoded, without case and `;parameters`. */
  readonly loose: string
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
  if (/[^\x21-\x7e]/.test(written)) return refuse('the path has a character that must be encoded')
  if (/%(?![0-9A-Fa-f]{2})/.test(written)) return refuse('the path has a malformed percent sign')
  // `%00` ends the path for some servers, and other control characters are dropped by some.
  if (/%(?:[01][0-9A-F]|7F)/i.test(written)) return refuse('the path has an encoded control character')
  if (/\\|%5C/i.test(written)) return refuse('the path has a backslash')
  const exact = written
    .replaceAll(/%[0-9A-Fa-f]{2}/g, code => {
      const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase()
    })
    .replaceAll(/\/{2,}/g, '/')
  // Some servers decode twice.
  if (/%25(?:2[EF]|5C)/i.test(exact)) return refuse('the path is encoded twice')
  const loose = decoded(exact)
    .replaceAll(/;[^/]*/g, '')
    .replaceAll(/\/{2,}/g, '/')
    .toLowerCase()
  if (loose.split('/').some(segment => segment === '.' || segment === '..'))
    return refuse('the path has a dot segment')
  return { ok: true, value: { exact, loose } }
}

/** Bytes that are no UTF-8 stay as they are. */
const decoded = (path: string): string => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path.replaceAll(/%([0-7][0-9A-F])/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
  }
}

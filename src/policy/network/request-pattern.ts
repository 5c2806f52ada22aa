/** The part of a rule about methods and paths, as in `GET,HEAD api.example.com/repos/acme/**`. */
import { type Parsed, refuse } from '../source.ts'
import { normalizePath, patternReadings, type RequestPath } from './request-path.ts'

export interface RequestPattern {
  /** Sorted. Empty: every method. */
  readonly methods: readonly string[]
  /** `*` is a part of one segment, `**` any number of segments. Empty: every path. */
  readonly path: string
  /** With its question mark. Empty: every query. */
  readonly query: string
}

/** A request as the policy sees it. */
export interface RequestLine extends RequestPath {
  readonly method: string
}

const MOST_METHODS = 16
const LONGEST_PATH = 1024
/** Everything that a path may have, without quotes: rules appear in commands that people paste. */
const PATTERN = /^\/[A-Za-z0-9._~%!$&()*+,;=:@/-]*$/
const QUERY = /^\?[A-Za-z0-9._~%!$&()+,;=:@/-]+$/

/** `methods` is the text before the host, `target` the text after host and port. */
export function parsePattern(methods: string, target: string): Parsed<RequestPattern> {
  const names = methods === '' ? [] : [...new Set(methods.split(','))].sort()
  if (names.length > MOST_METHODS) return refuse(`a rule has at most ${MOST_METHODS} methods`)
  if (names.some(name => !/^[A-Z][A-Z-]{0,31}$/.test(name)))
    return refuse('methods are upper case, with a comma between them', 'write "GET,HEAD HOST/PATH"')
  if (names.includes('CONNECT') || names.includes('TRACE') || names.includes('TRACK'))
    return refuse('CONNECT, TRACE and TRACK are never allowed')
  if (target === '') return { ok: true, value: { methods: names, path: '', query: '' } }
  const mark = target.indexOf('?')
  const [written, query] = mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark)]
  if (target.length > LONGEST_PATH) return refuse(`a path has at most ${LONGEST_PATH} characters`)
  if (!PATTERN.test(written))
    return refuse('the path has a character that a rule cannot have', 'percent-encode it')
  if (query !== '' && !QUERY.test(query))
    return refuse('a query is named as a whole, without a star', 'leave the query out to allow every query')
  const path = normalizePath(written)
  if (!path.ok) return path
  if (path.value.exact !== written)
    return refuse('the path is not in its plain form', `write "${path.value.exact}"`)
  if (written.split('/').some(segment => segment !== '**' && segment.includes('**')))
    return refuse('"**" must be a whole segment', 'write "/a/**", or "*" for a part of a segment')
  return { ok: true, value: { methods: names, path: written, query } }
}

export const printPattern = ({ methods, path, query }: RequestPattern, host: string): string =>
  `${methods.length === 0 ? '' : `${methods.join(',')} `}${host}${path}${query}`

/** Allow rules compare the exact path. Deny rules compare every reading, so that no spelling gets through. */
export function matchesRequest(
  { methods, path, query }: RequestPattern,
  request: RequestLine,
  how: 'exact' | 'any-reading',
): boolean {
  if (methods.length > 0 && !methods.includes(request.method)) return false
  if (query !== '' && query !== request.query) return false
  if (path === '') return true
  if (how === 'exact') return matchesPath(path, request.exact, matchesSegment)
  return patternReadings(path).some(pattern =>
    request.readings.some(reading => matchesPath(pattern, reading, matchesSegment)),
  )
}

/** Whether every request that matches `inner` matches `outer`. */
export const coversRequest = (outer: RequestPattern, inner: RequestPattern): boolean =>
  (outer.methods.length === 0 ||
    (inner.methods.length > 0 && inner.methods.every(method => outer.methods.includes(method)))) &&
  (outer.query === '' || outer.query === inner.query) &&
  coversPath(outer.path, inner.path)

/** What both match, if one path covers the other. */
export function intersectRequests(a: RequestPattern, b: RequestPattern): RequestPattern | undefined {
  const methods =
    a.methods.length === 0
      ? b.methods
      : b.methods.length === 0
        ? a.methods
        : a.methods.filter(method => b.methods.includes(method))
  if (methods.length === 0 && a.methods.length + b.methods.length > 0) return undefined
  const path = coversPath(a.path, b.path) ? b.path : coversPath(b.path, a.path) ? a.path : undefined
  if (path === undefined || (a.query !== '' && b.query !== '' && a.query !== b.query)) return undefined
  return { methods, path, query: a.query === '' ? b.query : a.query }
}

const coversPath = (outer: string, inner: string): boolean =>
  outer === '' || (inner !== '' && matchesPath(outer, inner, coversSegment))

/** Linear in time: after a `**`, only the last one is tried again. */
function matchesPath(
  pattern: string,
  path: string,
  matches: (pattern: string, segment: string) => boolean,
): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  let at = 0
  let retry: { at: number; from: number } | undefined
  for (let i = 0; i < given.length; ) {
    const part = wanted[at]
    if (part === '**') {
      retry = { at: ++at, from: i }
      continue
    }
    if (part !== undefined && matches(part, given[i] ?? '')) {
      at++
      i++
    } else if (retry === undefined) return false
    else {
      at = retry.at
      i = ++retry.from
    }
  }
  while (wanted[at] === '**') at++
  return at === wanted.length
}

/** A star matches no encoded slash: some servers decode it. */
function matchesSegment(pattern: string, segment: string): boolean {
  if (!pattern.includes('*')) return pattern === segment
  if (/%2F/i.test(segment)) return false
  const [first = '', ...rest] = pattern.split('*')
  if (!segment.startsWith(first)) return false
  let at = first.length
  const last = rest.pop() ?? ''
  for (const part of rest) {
    const found = segment.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return segment.length - at >= last.length && segment.endsWith(last)
}

function coversSegment(outer: string, inner: string): boolean {
  if (outer === inner) return true
  if (inner === '**') return false
  return inner.includes('*') ? outer === '*' : matchesSegment(outer, inner)
}

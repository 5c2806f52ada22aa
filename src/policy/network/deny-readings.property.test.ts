/** A denied path stays denied in every spelling that some server reads as that path. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Parsed } from '../source.ts'
import { decideConnection } from './decide-connection.ts'
import { decideRequest } from './decide-request.ts'
import { parseAllowRule, parseDenyRule } from './endpoint.ts'
import type { Host } from './host.ts'
import { compileNetwork } from './network.ts'
import type { Port } from './port.ts'
import { readRequestPath } from './request-path.ts'

const must = <T>(parsed: Parsed<T>): T => {
  if (!parsed.ok) throw new Error(parsed.why)
  return parsed.value
}
const source = { layer: 'live config', place: undefined }
const none = () => false

/** With a rule for the whole host, and one denial. */
function passes(denied: string, path: string): boolean {
  const index = compileNetwork({
    mode: 'gateway',
    offline: false,
    allow: [{ rule: must(parseAllowRule('api.example.com', none)), source }],
    deny: [{ rule: must(parseDenyRule(`api.example.com${denied}`, none)), source }],
  })
  const connection = decideConnection(index, { name: 'api.example.com' as Host }, 443 as Port)
  const read = readRequestPath(path)
  if (!connection.ok || !read.ok) return false
  return decideRequest(connection, { method: 'GET', ...read.value }).ok
}

const SEGMENTS = ['admin', 'x', 'items', 'v1.0', 'a b', 'é', '50%', 'a+b', '@s', '~me']
const segment = fc.constantFrom(...SEGMENTS)
/** A denied path, and a pattern that matches it. */
const denial = fc
  .array(fc.tuple(segment, fc.constantFrom('same', 'same', 'star', 'part')), { minLength: 1, maxLength: 4 })
  .chain(parts =>
    fc.tuple(fc.constant(parts.map(([text]) => text)), fc.boolean()).map(([path, isDeep]) => ({
      path,
      pattern: `/${parts
        .map(([text, how]) =>
          how === 'star' ? '*' : how === 'part' ? `${encode(text[0] ?? '')}*` : encode(text),
        )
        .join('/')}${isDeep ? '/**' : ''}`,
    })),
  )
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll('%40', '@').replaceAll('%2B', '+')

/** The ways in which a client may write one character. */
function spell(character: string, way: number): string {
  const bytes = [...Buffer.from(character)]
  const hex = bytes.map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')
  const ways = [
    /[A-Za-z0-9._~@+-]/.test(character) ? character : hex,
    hex,
    hex.toUpperCase(),
    hex.replaceAll('%', '%25'),
    hex.replaceAll('%', '%2525'),
    /[a-z]/.test(character) ? character.toUpperCase() : hex,
    /[a-z]/.test(character) ? String.fromCodePoint((character.codePointAt(0) ?? 0) + 0xfee0) : hex,
  ]
  const chosen = ways[way % ways.length] ?? hex
  return /[^\x21-\x7e]/.test(chosen) ? encodeURIComponent(chosen) : chosen
}

const SLASHES = [
  '/',
  '//',
  '/./',
  '%2F',
  '%2f',
  '%252F',
  '%c0%af',
  ';a=b/',
  '%3Bx/',
  '/%2e/',
  '\\',
  '.%2F',
  '%20/',
]
const ENDS = [
  '',
  '/',
  '//',
  ';',
  ';jsessionid=1',
  '%3b',
  '?',
  '?x=/y',
  '/?x',
  '%3Fx',
  '%23',
  '/;x',
  '.',
  '%20',
  '%2f',
  '%00',
]

describe('a denied path', () => {
  test.each([
    ['/admin', '/admin/'],
    ['/admin/', '/admin'],
    ['/admin', '/admin%2F'],
    ['/admin', '/admin%252f'],
    ['/admin', '/%2561dmin'],
    ['/admin', '/admin;x/y'],
    ['/admin', '/admin%3Fx'],
    ['/admin', '/admin%20'],
    ['/admin', '/admin.'],
    ['/admin', '/ADMIN'],
    ['/admin', '/%EF%BD%81dmin'],
    ['/admin/x', '/admin%2Fx'],
    ['/items/*', '/items/7%2Fowner'],
    ['/items/*', '/items%2F7'],
    ['/items/*/owner', '/items/7/owner/'],
    ['/a%2Fb', '/a/b'],
    ['/a%2Fb', '/a%2fb'],
    ['/admin/**', '/x%c0%afadmin'],
    ['/admin/**', '/%f8%80%80%81%a1dmin/x'],
  ])('%s: %s does not pass', (denied, path) => {
    expect(passes(denied, path)).toBe(false)
  })

  test.each([
    ['/admin', '/administrator'],
    ['/admin', '/admin/x'],
    ['/admin', '/x/admin'],
    ['/items/*', '/items/7/owner'],
    ['/items/*', '/item'],
    ['/admin/**', '/%E9/100%25'],
  ])('%s: %s is another path, and passes', (denied, path) => {
    expect(passes(denied, path)).toBe(true)
  })

  test('does not pass in any encoding', () => {
    const ways = fc.array(fc.nat(6), { minLength: 64, maxLength: 64 })
    const slash = fc.array(fc.constantFrom(...SLASHES, '/', '/', '/'), { minLength: 5, maxLength: 5 })
    fc.assert(
      fc.property(
        denial,
        ways,
        slash,
        fc.constantFrom(...ENDS),
        ({ path, pattern }, spelled, slashes, end) => {
          let at = 0
          const written = path
            .map((text, i) => {
              const before = i === 0 ? '/' : (slashes[i] ?? '/')
              return before + [...text].map(character => spell(character, spelled[at++ % 64] ?? 0)).join('')
            })
            .join('')
          if (passes(pattern, written + end)) throw new Error(`${written}${end} passes ${pattern}`)
        },
      ),
      { numRuns: 20_000 },
    )
  })
})

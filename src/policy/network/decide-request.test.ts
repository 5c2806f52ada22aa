import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Parsed } from '../source.ts'
import { decideConnection } from './decide-connection.ts'
import { decideRequest } from './decide-request.ts'
import { parseAllowRule, parseDenyRule } from './endpoint.ts'
import type { Host } from './host.ts'
import { type AllowRule, covers, intersect, overlapping, printRule } from './net-rule.ts'
import { compileNetwork } from './network.ts'
import type { Port } from './port.ts'
import { readRequestPath } from './request-path.ts'

const none = () => false
const must = <T>(parsed: Parsed<T>): T => {
  if (!parsed.ok) throw new Error(parsed.why)
  return parsed.value
}
const allowRule = (text: string): AllowRule => must(parseAllowRule(text, none))
const source = { layer: 'live config', place: undefined }

function judge(rules: { allow?: readonly string[]; deny?: readonly string[] }, method: string, url: string) {
  const index = compileNetwork({
    mode: 'gateway',
    offline: false,
    allow: (rules.allow ?? []).map(text => ({ rule: allowRule(text), source })),
    deny: (rules.deny ?? []).map(text => ({ rule: must(parseDenyRule(text, none)), source })),
  })
  const [, name = '', target = ''] = /^([^/]+)(\/.*)$/s.exec(url) ?? []
  const connection = decideConnection(index, { name: name as Host }, 443 as Port)
  if (!connection.ok) return connection.reason
  const path = readRequestPath(target)
  if (!path.ok) return path.why
  const verdict = decideRequest(connection, { method, ...path.value })
  return verdict.ok ? 'allowed' : verdict.reason
}

describe('a request rule', () => {
  const allow = ['GET,HEAD api.example.com/repos/acme/**']
  test.each([
    ['GET', 'api.example.com/repos/acme/x', 'allowed'],
    ['HEAD', 'api.example.com/repos/acme/x/y?page=2', 'allowed'],
    ['GET', 'api.example.com/repos/acme', 'allowed'],
    ['GET', 'api.example.com//repos///acme/x', 'allowed'],
    ['GET', 'api.example.com/%72epos/acme/x', 'allowed'],
    ['POST', 'api.example.com/repos/acme/x', 'request-not-allowed'],
    ['GET', 'api.example.com/repos/acmeevil/x', 'request-not-allowed'],
    ['GET', 'api.example.com/repos/Acme/x', 'request-not-allowed'],
    ['GET', 'api.example.com/repos', 'request-not-allowed'],
    ['GET', 'api.example.com/repos/acme;a=b/x', 'request-not-allowed'],
    ['GET', 'api.example.com/repos/acme/../other', 'the path has a dot segment'],
    ['GET', 'api.example.com/repos/acme/%2e%2E/other', 'the path has a dot segment'],
    ['GET', 'api.example.com/repos/acme/..%2fother', 'the path has a dot segment'],
    ['GET', 'api.example.com/repos/acme/..;/other', 'the path has a dot segment'],
    ['GET', 'api.example.com/repos/acme/%252e%252e/other', 'the path is encoded twice'],
    ['GET', 'api.example.com/repos/acme/..\\other', 'the path has a backslash'],
    ['GET', 'api.example.com/repos/acme/%5c', 'the path has a backslash'],
    ['GET', 'api.example.com/repos/acme/%00', 'the path has an encoded control character'],
    ['GET', 'api.example.com/repos/acme/%zz', 'the path has a malformed percent sign'],
    ['GET', 'other.example.com/repos/acme/x', 'not-allowed'],
  ])('%s %s: %s', (method, url, verdict) => {
    expect(judge({ allow }, method, url)).toBe(verdict)
  })

  test('a star is a part of one segment, and no encoded slash', () => {
    const allow = ['api.example.com/v*/items/*']
    expect(judge({ allow }, 'PUT', 'api.example.com/v2/items/7')).toBe('allowed')
    expect(judge({ allow }, 'PUT', 'api.example.com/v2/items/7/owner')).toBe('request-not-allowed')
    expect(judge({ allow }, 'PUT', 'api.example.com/v2/items/7%2fowner')).toBe('request-not-allowed')
    expect(
      judge({ allow: ['registry.example.com/@s%2Fname'] }, 'GET', 'registry.example.com/@s%2fname'),
    ).toBe('allowed')
  })

  test('a query counts only when the rule names it', () => {
    const allow = ['GET git.example.com/acme/x.git/info/refs?service=git-upload-pack']
    const url = 'git.example.com/acme/x.git/info/refs'
    expect(judge({ allow }, 'GET', `${url}?service=git-upload-pack`)).toBe('allowed')
    expect(judge({ allow }, 'GET', `${url}?service=git-receive-pack`)).toBe('request-not-allowed')
    expect(judge({ allow }, 'GET', `${url}?service=git-upload-pack&service=git-receive-pack`)).toBe(
      'request-not-allowed',
    )
    expect(judge({ allow }, 'GET', url)).toBe('request-not-allowed')
  })

  test('a rule for the whole host allows every request, and a denial wins in every spelling', () => {
    const allow = ['api.example.com', 'GET api.example.com/x']
    const deny = ['POST,DELETE api.example.com/private/**']
    expect(judge({ allow }, 'POST', 'api.example.com/y')).toBe('allowed')
    expect(judge({ allow, deny }, 'POST', 'api.example.com/y')).toBe('allowed')
    expect(judge({ allow, deny }, 'GET', 'api.example.com/private/y')).toBe('allowed')
    for (const path of [
      '/private/y',
      '/PRIVATE/y',
      '//private//y',
      '/private;v=1/y',
      '/%70rivate/y',
      '/private%2fy',
      '/private',
    ])
      expect(judge({ allow, deny }, 'POST', `api.example.com${path}`)).toBe('denied-by-rule')
  })

  test('a wildcard takes rules about requests too', () => {
    const allow = ['GET *.example.com/public/**']
    expect(judge({ allow }, 'GET', 'a.example.com/public/x')).toBe('allowed')
    expect(judge({ allow }, 'GET', 'a.example.com/x')).toBe('request-not-allowed')
    expect(
      judge({ allow, deny: ['*.example.com/public/secret'] }, 'GET', 'a.example.com/public/secret'),
    ).toBe('denied-by-rule')
  })

  test('the fix never holds text of a sandbox that a shell reads', () => {
    const index = compileNetwork({
      mode: 'gateway',
      offline: false,
      allow: [{ rule: allowRule('GET api.example.com/x'), source }],
      deny: [],
    })
    const connection = decideConnection(index, { name: 'api.example.com' as Host }, 443 as Port)
    if (!connection.ok) throw new Error('refused')
    const fixOf = (target: string): string => {
      const verdict = decideRequest(connection, { method: 'POST', ...must(readRequestPath(target)) })
      return verdict.ok ? '' : verdict.fix
    }
    expect(fixOf('/v1/messages?a=b')).toBe("pen allow 'POST api.example.com:443/v1/messages'")
    expect(fixOf("/';rm$(x)`y`")).toBe("pen allow 'POST api.example.com:443/**'")
  })
})

describe('the text of a rule', () => {
  test.each([
    ['GET api.example.com/repos/acme/**', 'GET api.example.com:443/repos/acme/**'],
    ['HEAD,GET api.example.com', 'GET,HEAD api.example.com:443'],
    ['api.example.com:8443/x', 'api.example.com:8443/x'],
    ['POST host.pen.internal:8080/v1/**', 'POST host.pen.internal:8080/v1/**'],
  ])('%s', (text, printed) => {
    expect(printRule(allowRule(text))).toBe(printed)
    expect(printRule(allowRule(printed))).toBe(printed)
  })

  test.each([
    'get api.example.com/x',
    'GET  ',
    'CONNECT api.example.com',
    'GET 203.0.113.7:80/x',
    'api.example.com/',
    'api.example.com/a/../b',
    'api.example.com/a**b',
    'api.example.com//a',
    "api.example.com/a'b",
    'api.example.com/a b',
    'api.example.com/a?b=*',
    'https://api.example.com/x',
  ])('%s is refused', text => {
    expect(parseAllowRule(text, none).ok).toBe(false)
  })

  test('a denial names no query', () => {
    expect(parseDenyRule('api.example.com/a?b', none).ok).toBe(false)
    expect(parseDenyRule('api.example.com/a', none).ok).toBe(true)
  })
})

const path = fc
  .array(fc.constantFrom('a', 'b', '*', '**', 'a*'), { minLength: 1, maxLength: 4 })
  .map(parts => `/${parts.join('/')}`)
const rule = fc
  .tuple(fc.constantFrom('', 'GET ', 'GET,POST ', 'POST '), fc.option(path, { nil: '' }))
  .map(([methods, where]) => allowRule(`${methods}api.example.com${where}`))
const request = fc.tuple(
  fc.constantFrom('GET', 'POST'),
  fc
    .array(fc.constantFrom('a', 'b', 'ab', ''), { minLength: 1, maxLength: 5 })
    .map(parts => `/${parts.join('/')}`),
)
const isAllowed = (one: AllowRule, [method, where]: [string, string]): boolean =>
  judge({ allow: [printRule(one)] }, method, `api.example.com${where}`) === 'allowed'

describe('merging rules about requests', () => {
  test('what a rule covers, it allows', () => {
    fc.assert(
      fc.property(rule, rule, request, (outer, inner, asked) => {
        if (covers(outer, inner) && isAllowed(inner, asked)) expect(isAllowed(outer, asked)).toBe(true)
      }),
    )
  })

  test('an intersection allows only what both allow, and is found among those that may overlap', () => {
    fc.assert(
      fc.property(rule, rule, request, (a, b, asked) => {
        const both = intersect(a, b)
        if (both === undefined) return
        expect(overlapping([b])(a)).toContain(b)
        if (isAllowed(both, asked)) expect(isAllowed(a, asked) && isAllowed(b, asked)).toBe(true)
      }),
    )
  })
})

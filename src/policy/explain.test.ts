import { describe, expect, test } from 'bun:test'
import { groupRules, layerOf, WORKSPACE, world } from '../../test/arbitrary/layer.ts'
import { compile } from './compile.ts'
import { explainConnection, explainFile, explanationText } from './explain.ts'
import { grow } from './fields.ts'
import type { HostPath } from './files/path.ts'
import { profileLayer } from './profile.ts'

const policy = (value: object) =>
  compile(
    grow(profileLayer('coding', world).settings, layerOf(value, 'user', 'live config').settings),
    WORKSPACE,
    groupRules,
  )
const open = policy({
  network: { http: ['a.test', '*.b.a.test:8443'], tcp: ['203.0.113.7:22'], deny: ['x.b.a.test'] },
})

function ask(text: string): string {
  const explained = explainConnection(open, text)
  if (!explained.ok) return `refused: ${explained.why}`
  const { verdict, subject, reason } = explained.value
  return `${verdict} ${subject}${reason === null ? '' : ` ${reason}`}`
}

describe('a question about a connection', () => {
  test.each([
    ['a.test', 'allowed a.test:443'],
    ['A.TEST.:443', 'allowed a.test:443'],
    ['a.test:22', 'denied a.test:22 port-not-allowed'],
    ['y.b.a.test:8443', 'allowed y.b.a.test:8443'],
    ['b.a.test:8443', 'denied b.a.test:8443 not-allowed'],
    ['x.b.a.test:8443', 'denied x.b.a.test:8443 denied-by-rule'],
    ['X.B.A.TEST.:8443', 'denied x.b.a.test:8443 denied-by-rule'],
    ['203.0.113.7:22', 'allowed 203.0.113.7:22'],
    ['203.0.113.7:23', 'denied 203.0.113.7:23 port-not-allowed'],
    ['203.0.113.8:22', 'denied 203.0.113.8:22 literal-not-allowed'],
    ['[2001:db9::7]:443', 'denied [2001:db9::7]:443 literal-not-allowed'],
    ['[::1]:80', 'denied [::1]:80 local-name'],
    ['169.254.169.254:80', 'denied 169.254.169.254:80 address-not-allowed'],
    ['localhost:80', 'denied localhost:80 local-name'],
    ['host.pen.internal:5432', 'denied host.pen.internal:5432 not-allowed'],
  ])('%s: %s', (text, answer) => {
    expect(ask(text)).toBe(answer)
  })

  test('a request is judged by the rules about requests', () => {
    const rules = { http: ['GET a.test/public/**', 'b.test'], deny: ['POST b.test/admin/**'] }
    const judged = (text: string) => {
      const explained = explainConnection(policy({ network: rules }), text)
      return explained.ok ? `${explained.value.verdict}: ${explained.value.why}` : explained.why
    }
    expect(judged('GET a.test/public/x')).toBe('allowed: GET a.test:443/public/** grants it')
    expect(judged('a.test/public/x')).toStartWith('allowed')
    expect(judged('POST a.test/public/x')).toBe('denied: no rule allows POST a.test/public/x')
    expect(judged('GET a.test/public/../x')).toBe('the path has a dot segment')
    expect(judged('a.test')).toBe('allowed: only these requests are allowed: GET a.test:443/public/**')
    expect(judged('POST b.test/ADMIN/x')).toBe('denied: denied by "POST b.test/admin/**"')
    expect(judged('POST b.test')).toStartWith('allowed')
    expect(judged('b.test')).toBe('allowed: every request is allowed, except POST b.test/admin/**')
  })

  test.each([
    '',
    ':443',
    'a.test:',
    'a.test:0',
    'a.test:65536',
    'a.test:443:22',
    '[a.test]:443',
    '2001:db9::7',
    '127.1:80',
    'a b:443',
    'a.test/x y',
  ])('%j is no question, and says why', text => {
    expect(ask(text)).toStartWith('refused: ')
  })
})

describe('an explanation', () => {
  test('says verdict, rule, file and line', () => {
    const source = { layer: 'live config', file: '/h/u/.pen/config.json', line: 7 }
    const text = explanationText({
      subject: 'a.test:443',
      verdict: 'allowed',
      reason: null,
      why: 'a.test:443 grants it',
      rule: 'a.test:443',
      source,
      fix: null,
    })
    expect(text).toBe(
      'allowed: a.test:443\n  why:  a.test:443 grants it\n  rule: a.test:443\n  from: live config (/h/u/.pen/config.json:7)',
    )
  })

  test('of a denied file says what would change it', () => {
    const explained = explainFile(open, '/data/x' as HostPath, 'read')
    expect(explained).toMatchObject({ verdict: 'denied', reason: 'not-granted', rule: null, source: null })
    expect(explained.fix).toContain('files.read')
  })

  test('of an allowed file names the grant', () => {
    expect(explainFile(open, `${WORKSPACE}/src` as HostPath, 'write')).toMatchObject({
      verdict: 'allowed',
      rule: WORKSPACE,
      source: { layer: 'profile coding', file: null, line: null },
      fix: null,
    })
  })
})

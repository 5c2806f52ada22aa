import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../../test/gateway/world.ts'
import { checkUnopened, hostEntry, openedHosts } from './unopened.ts'

const source = { layer: 'test', place: undefined }
const context = { trust: 'user', isPublicSuffix: () => false } as const

function unopened(host: string) {
  const parsed = hostEntry({ host, open: false }, context)
  if (!parsed.ok) throw new Error(parsed.why)
  return { rule: parsed.value, source }
}

/** A policy in which this host has `"open": false`. */
function check(host: string, options: Parameters<typeof policyOf>[0]): void {
  const { allow, deny, secrets } = policyOf({ allow: [], ...options })
  checkUnopened({ allow: [...allow, unopened(host)], deny, secrets })
}

describe('"open": false', () => {
  const secret = (to: string) => ({ secrets: [{ name: 'KEY', to: [to] }] })

  test.each([
    ['a.test:443', secret('a.test:443'), 'the secret KEY'],
    ['a.test:443', secret('*.test.example:443'), undefined],
    ['x.a.test:443', secret('*.a.test:443'), 'the secret KEY'],
    ['*.a.test:443', secret('x.a.test:443/v1/**'), 'the secret KEY'],
    ['a.test:443', secret('a.test:8443'), undefined],
    ['a.test:443', secret('http://a.test:443'), undefined],
    ['a.test:443', { deny: ['POST a.test/**'] }, 'the denial POST a.test/**'],
    ['*.b.test:443', { deny: ['POST a.b.test/**'] }, 'the denial POST a.b.test/**'],
    ['a.test:443', { deny: ['b.test'] }, undefined],
    ['a.test:443', { allow: ['GET a.test/**'] }, undefined],
  ] as const)('of %s beside %j', (host, options, conflict) => {
    if (conflict === undefined) expect(() => check(host, options)).not.toThrow()
    else expect(() => check(host, options)).toThrow(conflict)
  })

  test('is for a whole host, and never from a project', () => {
    expect(hostEntry({ host: 'GET a.test/x', open: false }, context)).toMatchObject({ ok: false })
    const project = { ...context, trust: 'untrusted' } as const
    expect(hostEntry({ host: 'a.test', open: false }, project)).toMatchObject({ ok: false })
    expect(hostEntry('a.test', project)).toMatchObject({ ok: true })
  })
})

test('a host is listed as opened only if a rule or a secret opens it', () => {
  const opened = openedHosts(
    policyOf({
      allow: ['GET a.test/x', 'GET whole.test/x', 'whole.test:443', 'GET mixed.test/x', 'mixed.test:443'],
      deny: ['POST mixed.test/**', 'POST unknown.test/**'],
      secrets: [{ name: 'KEY', to: ['s.test:443', 'http://plain.test'] }],
    }),
  )
  expect(opened.map(({ rule, from }) => `${rule} for ${from}`)).toEqual([
    'a.test:443 for GET a.test:443/x',
    'mixed.test:443 for GET mixed.test:443/x',
    'mixed.test for POST mixed.test/**',
    's.test:443 for secret KEY',
  ])
})

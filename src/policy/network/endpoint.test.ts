import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Parsed } from '../source.ts'
import {
  everySuffixIsPublic,
  parseAllowRule,
  parseDenyRule,
  parseHttpRule,
  parseTcpRule,
} from './endpoint.ts'
import { listOf, printRule } from './net-rule.ts'
import type { IsPublicSuffix } from './net-target.ts'

const PUBLIC = new Set(['com', 'co.uk', 'org'])
const isPublicSuffix: IsPublicSuffix = name => PUBLIC.has(name)

const parsers = {
  http: (text: string) => parseHttpRule(text, isPublicSuffix),
  tcp: (text: string) => parseTcpRule(text),
  allow: (text: string) => parseAllowRule(text, isPublicSuffix),
  deny: (text: string) => parseDenyRule(text, isPublicSuffix),
} as const

const printed = (parsed: Parsed<Parameters<typeof printRule>[0]>): string =>
  parsed.ok ? `${parsed.value.kind} ${printRule(parsed.value)}` : `refused: ${parsed.why}`

describe('an http entry is a name with a port, or at 443', () => {
  test.each([
    ['registry.example.com:443', 'name registry.example.com:443'],
    ['registry.example.com', 'name registry.example.com:443'],
    ['Git.Example.com.:22', 'name git.example.com:22'],
    ['intranet:80', 'name intranet:80'],
    ['printer.local:631', 'name printer.local:631'],
    ['*.githubusercontent.com', 'wildcard *.githubusercontent.com:443'],
    ['*.Allowed.Test.:8443', 'wildcard *.allowed.test:8443'],
    ['*.s3.example.co.uk:443', 'wildcard *.s3.example.co.uk:443'],
  ])('%j', (text, rule) => {
    expect(printed(parsers.http(text))).toBe(rule)
    expect(printed(parsers.allow(text))).toBe(rule)
  })
})

describe('a tcp entry is an address or host.pen.internal, with its port', () => {
  test.each([
    ['203.0.113.7:5432', 'address 203.0.113.7:5432'],
    ['[2001:db9::7]:5432', 'address [2001:db9::7]:5432'],
    ['[2001:DB9::7]:5432', 'address [2001:db9::7]:5432'],
    ['10.0.0.5:5432', 'address 10.0.0.5:5432'],
    ['[fd00::5]:5432', 'address [fd00::5]:5432'],
    ['metadata:169.254.169.254:80', 'address metadata:169.254.169.254:80'],
    ['metadata:[fd00:ec2::254]:80', 'address metadata:[fd00:ec2::254]:80'],
    ['host.pen.internal:5432', 'host-service host.pen.internal:5432'],
    ['HOST.PEN.INTERNAL.:5432', 'host-service host.pen.internal:5432'],
  ])('%j', (text, rule) => {
    expect(printed(parsers.tcp(text))).toBe(rule)
    expect(printed(parsers.allow(text))).toBe(rule)
  })
})

describe('a grant for a metadata service says so', () => {
  test.each([
    ['169.254.169.254:80', 'metadata:169.254.169.254:80'],
    ['[fd00:ec2::254]:80', 'metadata:[fd00:ec2::254]:80'],
    ['169.254.169.254', 'metadata:169.254.169.254:PORT'],
  ])('%j is refused, with the entry that says it', (text, meant) => {
    for (const parse of [parsers.tcp, parsers.allow])
      expect(parse(text)).toMatchObject({ ok: false, fix: `if that is meant, write "${meant}"` })
  })

  test('the word is for such addresses alone, and a denial needs none', () => {
    for (const text of ['metadata:10.0.0.5:80', 'metadata:example.com:443'])
      expect(parsers.allow(text).ok).toBe(false)
    expect(printed(parsers.allow('metadata:443'))).toBe('name metadata:443')
    expect(printed(parsers.deny('169.254.169.254:80'))).toBe('address metadata:169.254.169.254:80')
  })
})

describe('a deny entry is any target, at all ports unless it says one', () => {
  test.each([
    ['telemetry.example.com', 'name telemetry.example.com'],
    ['telemetry.example.com:443', 'name telemetry.example.com:443'],
    ['*.example.com', 'wildcard *.example.com'],
    ['203.0.113.7', 'address 203.0.113.7'],
    ['[2001:db9::7]', 'address [2001:db9::7]'],
    ['[2001:db9::7]:22', 'address [2001:db9::7]:22'],
    ['169.254.169.254', 'address 169.254.169.254'],
    ['224.0.0.1', 'address 224.0.0.1'],
    ['host.pen.internal', 'host-service host.pen.internal'],
  ])('%j', (text, rule) => {
    expect(printed(parsers.deny(text))).toBe(rule)
  })
})

describe('a refused entry comes with the entry that was meant', () => {
  test.each([
    ['http', 'https://allowed.test', 'write "allowed.test:443"'],
    ['http', 'http://allowed.test/', 'write "allowed.test:80"'],
    ['http', 'HTTPS://User:secret@Allowed.test:8443/a?b#c', 'write "allowed.test:8443"'],
    ['http', 'ssh://git@allowed.test/repo.git', 'write "allowed.test:22"'],
    ['http', 'allowed.test/', 'write "allowed.test:443"'],
    ['http', 'allowed.test:8443/', 'write "allowed.test:8443"'],
    ['http', ' allowed.test', 'write "allowed.test:443"'],
    ['http', 'allowed.test:443 ', 'write "allowed.test:443"'],
    ['http', '*allowed.test', 'write "*.allowed.test"'],
    ['http', '203.0.113.7:5432', 'put "203.0.113.7:5432" under network.tcp'],
    ['http', 'host.pen.internal:5432', 'put "host.pen.internal:5432" under network.tcp'],
    ['tcp', 'db.example.com:5432', 'put "db.example.com:5432" under network.http'],
    ['tcp', 'tcp://203.0.113.7:5432', 'write "203.0.113.7:5432"'],
    ['tcp', '203.0.113.7', 'write "203.0.113.7:PORT"'],
    ['tcp', '[2001:db9::7]', 'write "[2001:db9::7]:PORT"'],
    ['tcp', 'host.pen.internal', 'write "host.pen.internal:PORT"'],
    ['tcp', '2001:db9::7', 'write "[2001:db9::7]:PORT"'],
    ['tcp', '[2001:db9:0:0:0:0:0:7]:5432', 'write "[2001:db9::7]:5432"'],
    ['tcp', '[::ffff:198.51.100.10]:8080', 'write "198.51.100.10:8080"'],
    ['tcp', '[64:ff9b::c633:640a]:8080', 'write "198.51.100.10:8080"'],
    ['deny', '[::ffff:198.51.100.10]', 'write "198.51.100.10"'],
    ['deny', 'https://telemetry.example.com/v1', 'write "telemetry.example.com:443"'],
    ['tcp', '127.0.0.1:5432', '"host.pen.internal:5432" is the name for a service on this machine'],
    ['tcp', '[::1]:5432', '"host.pen.internal:5432" is the name for a service on this machine'],
    ['tcp', '0.0.0.0:5432', '"host.pen.internal:5432" is the name for a service on this machine'],
    ['tcp', '[::]:5432', '"host.pen.internal:5432" is the name for a service on this machine'],
    ['http', 'localhost:3000', '"host.pen.internal:3000" is the name for a service on this machine'],
    ['http', '*.localhost', '"host.pen.internal:PORT" is the name for a service on this machine'],
    ['deny', '127.0.0.1', '"host.pen.internal:PORT" is the name for a service on this machine'],
    ['http', '*.co.uk', 'name the domain: "*.example.co.uk"'],
    ['http', 'allowed.test:443,80', 'write one entry for each port'],
  ] as const)('%s: %j', (list, text, fix) => {
    expect(parsers[list](text)).toMatchObject({ ok: false, fix })
  })
})

describe('an entry is refused in every list', () => {
  test.each([
    ...[
      '',
      ' ',
      ',',
      '*',
      '*.',
      '*:443',
      '*.com',
      '*.com:443',
      '*.co.uk',
      '*.test',
      '*.internal',
      'a.*.test',
      '*.*.test',
    ],
    ...[
      '**.allowed.test',
      'allowed.*',
      'a*.allowed.test',
      '*.127.0.0.1',
      '*.1',
      '*.pen.internal',
      'x.pen.internal',
      'pen.internal',
    ],
    ...[
      '*.host.pen.internal',
      'localhost',
      'x.localhost:80',
      '127.1:80',
      '0:80',
      '0x7f.1:80',
      '017700000001',
      '2130706433',
    ],
    ...[
      '127.0.0.1:80',
      '127.255.255.254:80',
      '[::1]:80',
      '::1',
      '[::1%lo]:80',
      '[fe80::1%25lo]:80',
      '[127.0.0.1]:80',
      '[[::1]]:80',
    ],
    ...[
      '[::1]x:80',
      '[]:80',
      '[allowed.test]:80',
      'allowed.test:',
      'allowed.test:0',
      'allowed.test:65536',
      'allowed.test:0x1bb',
    ],
    ...[
      'allowed.test:443:22',
      'allowed.test: 443',
      'allowed.test :443',
      ':443',
      'allowed.test:*',
      'allowed.test:https',
    ],
    ...[
      'allowed.test@evil.test:443',
      'evil.test#.allowed.test',
      'evil.test\\.allowed.test',
      'evil.test\0.allowed.test',
      'evil%2etest',
    ],
    ...[
      'allowed.test\n',
      'allowed.test\nevil.test',
      'аllowed.test',
      'allowed。test',
      'xn--0000h',
      '10.0.0.0/8',
      'file:///etc/passwd',
      'https://',
    ],
    ...['2002:7f00:1::1', '[2002:7f00:1::1]:80', '[::ffff:7f00:1]:80', '[::127.0.0.1]:80', '0.0.0.0', '[::]'],
  ])('%j', text => {
    for (const [list, parse] of Object.entries(parsers)) {
      const parsed = parse(text)
      expect(`${list} ${parsed.ok}`).toBe(`${list} false`)
      if (!parsed.ok) expect(`${parsed.why} ${parsed.fix ?? ''}`).toMatch(/^[ -~…“”]+$/)
    }
  })
})

test('addresses that take no connection cannot be granted, and can be denied', () => {
  for (const text of ['224.0.0.1:80', '255.255.255.255:80', '[ff02::1]:80', '[fe80::1]:80']) {
    expect(parsers.tcp(text).ok).toBe(false)
    expect(parsers.deny(text).ok).toBe(true)
  }
})

test('a user name or password in a URL is never repeated', () => {
  for (const text of [
    'https://user:hunter2@allowed.test/',
    'https://user:hunter2@127.0.0.1/',
    'user:hunter2@allowed.test',
  ])
    for (const parse of Object.values(parsers)) expect(JSON.stringify(parse(text))).not.toContain('hunter2')
})

test('without a list of public suffixes no wildcard is accepted', () => {
  expect(parseHttpRule('*.example.com', everySuffixIsPublic).ok).toBe(false)
  expect(parseHttpRule('example.com', everySuffixIsPublic).ok).toBe(true)
})

test('a grant belongs to the list that parses it', () => {
  for (const text of [
    'allowed.test:443',
    '*.allowed.test:443',
    '203.0.113.7:1',
    '[2001:db9::7]:1',
    'host.pen.internal:1',
  ]) {
    const parsed = parsers.allow(text)
    if (!parsed.ok) throw new Error(parsed.why)
    expect(parsers[listOf(parsed.value)](text)).toEqual(parsed)
  }
})

test('the fast path for a plain name gives the same result as the full parser', () => {
  const part = fc.constantFrom(
    'a',
    '0',
    'a-b',
    '-a',
    'xn--a',
    'localhost',
    'pen',
    'internal',
    'A',
    '',
    '1',
    'co',
  )
  const port = fc.constantFrom('443', '1', '0', '65536', '65535', '9999', '0443', '', '22:1')
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), port, (parts, port) => {
      const text = `${parts.join('.')}:${port}`
      const long = parseAllowRule(text, isPublicSuffix)
      const short = parseHttpRule(text, isPublicSuffix)
      if (!long.ok || listOf(long.value) === 'http') expect(short).toEqual(long)
      else expect(short.ok).toBe(false)
    }),
    { numRuns: 3000 },
  )
})

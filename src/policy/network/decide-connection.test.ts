import { describe, expect, test } from 'bun:test'
import type { NetworkMode } from '../settings.ts'
import type { Parsed } from '../source.ts'
import { type Address, parseAddress } from './address.ts'
import { type ConnectionVerdict, checkDial, type Dial, decideConnection } from './decide-connection.ts'
import type { Denied } from './denial.ts'
import { parseAllowRule, parseDenyRule } from './endpoint.ts'
import { type Host, parseHost } from './host.ts'
import { compileNetwork, type NetworkIndex } from './network.ts'
import { type Port, parsePort } from './port.ts'

const value = <T>(parsed: Parsed<T>): T => {
  if (!parsed.ok) throw new Error(parsed.why)
  return parsed.value
}
const notPublic = (): boolean => false

interface Rules {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly mode?: NetworkMode
  readonly offline?: boolean
  readonly mirrors?: readonly string[]
}

const compiled = ({
  allow = [],
  deny = [],
  mode = 'gateway',
  offline = false,
  mirrors = [],
}: Rules): NetworkIndex =>
  compileNetwork({
    mode,
    offline,
    allow: allow.map((text, i) => ({
      rule: value(parseAllowRule(text, notPublic)),
      source: { layer: 'live config', place: { file: 'config.json', line: i + 1, column: 1 } },
    })),
    deny: deny.map(text => ({
      rule: value(parseDenyRule(text, notPublic)),
      source: { layer: 'deny list', place: undefined },
    })),
    mirrors: mirrors.map(text => value(parseHost(text))),
  })

/** A target as a sandbox would name it: an address literal, or else a name; refused spellings count as denied. */
function verdict(rules: Rules, text: string): ConnectionVerdict | 'refused' {
  const [, inBrackets, plain, digits = ''] = /^(?:\[(.*)\]|(.*)):([^:]*)$/s.exec(text) ?? []
  const target = inBrackets ?? plain ?? ''
  const port = parsePort(digits)
  const address = parseAddress(target)
  const host = parseHost(target)
  if (!port.ok || (!address.ok && !host.ok)) return 'refused'
  const to = address.ok ? { address: address.value } : { name: value(host) }
  return decideConnection(compiled(rules), to, port.value)
}

const isAllowed = (rules: Rules, text: string): boolean => {
  const found = verdict(rules, text)
  return found !== 'refused' && found.ok
}
const denied = (rules: Rules, text: string): Denied => {
  const found = verdict(rules, text)
  if (found === 'refused' || found.ok) throw new Error(`${text} was not denied by the verdict`)
  return found
}

describe('absence denies', () => {
  test.each([
    'allowed.test:443',
    '203.0.113.7:443',
    'host.pen.internal:80',
    'localhost:80',
    '127.0.0.1:80',
    '[::1]:80',
  ])('%s', text => {
    expect(isAllowed({}, text)).toBe(false)
    expect(isAllowed({ deny: ['other.test'] }, text)).toBe(false)
  })

  test('one grant is one target at one port', () => {
    const rules = { allow: ['allowed.test:443'] }
    expect(isAllowed(rules, 'allowed.test:443')).toBe(true)
    for (const other of [
      'allowed.test:22',
      'allowed.test:80',
      'allowed.test:8443',
      'evil.test:443',
      'a.allowed.test:443',
    ])
      expect(isAllowed(rules, other)).toBe(false)
  })
})

describe('a wildcard', () => {
  const rules = { allow: ['*.allowed.test:443'] }
  test.each(['a.allowed.test:443', 'a.b.allowed.test:443', 'A.Allowed.TEST.:443'])('allows %s', text => {
    expect(isAllowed(rules, text)).toBe(true)
  })
  test.each([
    'allowed.test:443',
    'evilallowed.test:443',
    'allowed.test.evil.test:443',
    'allowedxtest:443',
    'allowedXtest:443',
    'a.allowedxtest:443',
    'a.allowed.test:80',
    'xn--llowed-4nf.test:443',
    'a.xn--llowed-4nf.test:443',
    'evil.test\0.allowed.test:443',
    '127.0.0.1%23.allowed.test:443',
    '::ffff:127.0.0.1%x.allowed.test:443',
    'evil.test#.allowed.test:443',
    '198.51.100.10:443',
  ])('does not allow %j', text => {
    expect(isAllowed(rules, text)).toBe(false)
  })

  test('says of its apex that it is not meant', () => {
    expect(denied(rules, 'allowed.test:443').why).toContain('not allowed.test itself')
    expect(isAllowed({ allow: ['*.allowed.test', 'allowed.test'] }, 'allowed.test:443')).toBe(true)
  })
})

describe('a denial wins over every grant, in every spelling', () => {
  const allow = [
    '*.allowed.test:443',
    'secret.allowed.test:443',
    '*.secret.allowed.test:443',
    '203.0.113.7:443',
    'host.pen.internal:443',
  ]
  test.each([
    ['secret.allowed.test', 'secret.allowed.test:443'],
    ['secret.allowed.test', 'SECRET.allowed.test.:443'],
    ['Secret.Allowed.Test.', 'secret.allowed.test:443'],
    ['secret.allowed.test:443', 'secret.allowed.test:443'],
    ['*.allowed.test', 'secret.allowed.test:443'],
    ['*.allowed.test', 'a.secret.allowed.test:443'],
    ['*.secret.allowed.test', 'a.secret.allowed.test:443'],
    ['203.0.113.7', '203.0.113.7:443'],
    ['203.0.113.7:443', '203.0.113.7:443'],
    ['host.pen.internal', 'host.pen.internal:443'],
  ])('%s denies %s', (rule, text) => {
    expect(isAllowed({ allow }, text)).toBe(true)
    expect(denied({ allow, deny: [rule] }, text)).toMatchObject({
      reason: 'denied-by-rule',
      source: { layer: 'deny list' },
    })
  })

  test('a denial of one port leaves the others', () => {
    const rules = { allow: ['allowed.test:443', 'allowed.test:22'], deny: ['allowed.test:22'] }
    expect(isAllowed(rules, 'allowed.test:443')).toBe(true)
    expect(isAllowed(rules, 'allowed.test:22')).toBe(false)
  })

  test('a denial of a subdomain leaves its neighbours', () => {
    const rules = { allow: ['*.allowed.test:443'], deny: ['secret.allowed.test'] }
    expect(isAllowed(rules, 'open.allowed.test:443')).toBe(true)
    expect(isAllowed(rules, 'notsecret.allowed.test:443')).toBe(true)
  })
})

describe('an address grant', () => {
  const rules = { allow: ['198.51.100.10:8080', '[2001:db9::7]:8080'] }
  test('allows that very address and port', () => {
    expect(isAllowed(rules, '198.51.100.10:8080')).toBe(true)
    expect(isAllowed(rules, '[2001:db9::7]:8080')).toBe(true)
    expect(isAllowed(rules, '[2001:DB9:0::7]:8080')).toBe(true)
  })
  test.each([
    '198.51.100.10:80',
    '198.51.100.11:8080',
    '[::ffff:198.51.100.10]:8080',
    '[64:ff9b::c633:640a]:8080',
    '3325256714:8080',
    '0xc633640a:8080',
    '198.51.100.010:8080',
    'ten.allowed.test:8080',
    '[2001:db9::8]:8080',
  ])('does not allow %s', text => {
    expect(isAllowed(rules, text)).toBe(false)
  })
  test('a name grant allows no address', () => {
    expect(isAllowed({ allow: ['allowed.test:443'] }, '198.51.100.10:443')).toBe(false)
  })
})

describe('host.pen.internal', () => {
  test('is opened by its own rule and port alone', () => {
    expect(verdict({ allow: ['host.pen.internal:5432'] }, 'Host.Pen.Internal.:5432')).toMatchObject({
      ok: true,
      dial: { kind: 'host-service' },
    })
    expect(isAllowed({ allow: ['host.pen.internal:5432'] }, 'host.pen.internal:5433')).toBe(false)
    expect(isAllowed({ allow: ['host.pen.internal:5432'] }, 'x.host.pen.internal:5432')).toBe(false)
    expect(isAllowed({ allow: ['host.pen.internal:5432'] }, '127.0.0.1:5432')).toBe(false)
  })
  test('is not among the names of any wildcard, even one that no parser would make', () => {
    const source = { layer: 'test', place: undefined }
    const port = 5432 as Port
    const rule = { kind: 'wildcard', suffix: 'internal' as Host, port } as const
    const index = compileNetwork({ mode: 'gateway', offline: false, allow: [{ rule, source }], deny: [] })
    expect(decideConnection(index, { name: 'host.pen.internal' as Host }, port).ok).toBe(false)
    expect(decideConnection(index, { name: 'db.internal' as Host }, port).ok).toBe(true)
  })
})

test('names of the machine itself are never dialled, even by a rule that no parser would make', () => {
  const source = { layer: 'test', place: undefined }
  const port = 80 as Port
  const rule = { kind: 'name', host: 'localhost' as Host, port } as const
  const index = compileNetwork({ mode: 'gateway', offline: false, allow: [{ rule, source }], deny: [] })
  expect(decideConnection(index, { name: 'localhost' as Host }, port)).toMatchObject({
    ok: false,
    reason: 'local-name',
    fix: 'pen allow host.pen.internal:80',
  })
})

test('local names are denied unless listed', () => {
  for (const name of [
    'intranet',
    'printer.local',
    'host.docker.internal',
    'host.containers.internal',
    'gateway.docker.internal',
  ]) {
    expect(denied({ allow: ['allowed.test'] }, `${name}:80`).reason).toBe('local-name')
    expect(isAllowed({ allow: [`${name}:80`] }, `${name}:80`)).toBe(true)
  }
})

test('offline and mode "none" overrule every grant', () => {
  const allow = ['allowed.test:443', '*.allowed.test:443', '203.0.113.7:443', 'host.pen.internal:443']
  for (const text of ['allowed.test:443', 'a.allowed.test:443', '203.0.113.7:443', 'host.pen.internal:443']) {
    expect(isAllowed({ allow }, text)).toBe(true)
    expect(denied({ allow, offline: true }, text).reason).toBe('offline')
    expect(denied({ allow, mode: 'none' }, text).reason).toBe('network-off')
    expect(denied({ allow, mode: 'none', offline: true }, text).reason).toBe('offline')
  }
})

describe('a denial says what, why and how to allow it', () => {
  const rules = {
    allow: ['allowed.test:443', '203.0.113.7:5432', 'host.pen.internal:1'],
    deny: ['evil.test'],
  }
  test.each([
    ['evil.test:443', 'denied-by-rule', 'take "evil.test" out of deny list'],
    ['other.test:443', 'not-allowed', 'pen allow other.test:443'],
    ['allowed.test:22', 'port-not-allowed', 'pen allow allowed.test:22'],
    ['203.0.113.7:22', 'port-not-allowed', 'pen allow 203.0.113.7:22'],
    ['203.0.113.8:22', 'literal-not-allowed', 'pen allow 203.0.113.8:22'],
    ['[2001:db9::8]:22', 'literal-not-allowed', 'pen allow [2001:db9::8]:22'],
    ['169.254.169.254:80', 'address-not-allowed', 'pen allow metadata:169.254.169.254:80'],
    ['10.0.0.1:80', 'address-not-allowed', 'pen allow 10.0.0.1:80'],
    ['[::ffff:203.0.113.8]:22', 'address-not-allowed', 'pen allow 203.0.113.8:22, and dial that instead'],
    ['[64:ff9b::7f00:1]:22', 'address-not-allowed', 'pen allow host.pen.internal:22, and dial that instead'],
    ['224.0.0.1:80', 'address-not-allowed', 'none: such an address takes no connection'],
    ['[fe80::1]:80', 'address-not-allowed', 'none: it needs a zone id, which no rule can hold'],
    ['127.0.0.1:80', 'local-name', 'pen allow host.pen.internal:80'],
    ['[::1]:80', 'local-name', 'pen allow host.pen.internal:80'],
    ['localhost:80', 'local-name', 'pen allow host.pen.internal:80'],
    ['host.pen.internal:2', 'port-not-allowed', 'pen allow host.pen.internal:2'],
  ] as const)('%s', (text, reason, fix) => {
    expect(denied(rules, text)).toMatchObject({ reason, fix })
    expect(denied(rules, text).why).not.toBe('')
  })

  test('and an allow names the rule, its place and what to dial', () => {
    expect(verdict({ allow: ['other.test', '*.allowed.test:443'] }, 'a.allowed.test:443')).toEqual({
      ok: true,
      rule: { kind: 'wildcard', suffix: 'allowed.test' as Host, port: 443 as Port },
      source: { layer: 'live config', place: { file: 'config.json', line: 2, column: 1 } },
      dial: { kind: 'name', host: 'a.allowed.test' as Host, port: 443 as Port },
    })
  })

  test('the more specific of two grants is named, and of equal ones the first', () => {
    const allow = [
      '*.test.example:443',
      '*.a.test.example:443',
      'b.a.test.example:443',
      'b.a.test.example:443',
    ]
    expect(verdict({ allow }, 'b.a.test.example:443')).toMatchObject({ source: { place: { line: 3 } } })
    expect(verdict({ allow }, 'c.a.test.example:443')).toMatchObject({ source: { place: { line: 2 } } })
    expect(verdict({ allow }, 'c.test.example:443')).toMatchObject({ source: { place: { line: 1 } } })
  })
})

describe('an address that a name resolved to', () => {
  const dial = (text: string): Dial => ({ kind: 'name', host: value(parseHost(text)), port: 443 as Port })
  const check = (rules: Rules, text: string, name = 'allowed.test') =>
    checkDial(compiled({ allow: ['allowed.test:443'], ...rules }), value(parseAddress(text)), dial(name))

  test.each(['198.51.100.10', '203.0.113.7', '192.0.2.1', '1.1.1.1', '2606:4700::1111'])(
    '%s is dialled',
    text => {
      expect(check({}, text)).toEqual({ ok: true })
    },
  )

  const SPECIAL = [
    '10.0.0.5',
    '192.168.1.1',
    '172.16.0.1',
    'fd00::5',
    '100.64.0.1',
    '169.254.1.1',
    '169.254.169.254',
    '168.63.129.16',
    '198.18.0.1',
    '240.0.0.1',
    '2001:db8::1',
  ]
  const NEVER = [
    '127.0.0.1',
    '127.255.255.254',
    '::1',
    '0.0.0.0',
    '::',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    '2002:7f00:1::1',
    '2001::1',
    'fe80::1',
    'ff02::1',
    '224.0.0.1',
  ]

  test.each(SPECIAL)('%s is dialled only when a rule names it at that port', text => {
    const isMetadata = text === '169.254.169.254' || text === '168.63.129.16'
    const literal = `${isMetadata ? 'metadata:' : ''}${text.includes(':') ? `[${text}]` : text}`
    expect(check({}, text).ok).toBe(false)
    expect(check({ allow: [`${literal}:443`] }, text)).toEqual({ ok: true })
    expect(check({ allow: [`${literal}:80`] }, text).ok).toBe(false)
  })

  test.each(NEVER)('%s is never dialled', text => {
    expect(check({}, text).ok).toBe(false)
    expect(check({ mirrors: ['allowed.test'] }, text).ok).toBe(false)
  })

  test('may be private for a mirror that the system names, and for that name only', () => {
    const mirrors = ['mirror.test']
    expect(check({ mirrors }, '10.0.0.5', 'mirror.test')).toEqual({ ok: true })
    expect(check({ mirrors }, '100.64.0.1', 'mirror.test')).toEqual({ ok: true })
    expect(check({ mirrors }, '10.0.0.5', 'allowed.test').ok).toBe(false)
    for (const text of ['169.254.169.254', '100.100.100.200', '169.254.1.1', '127.0.0.1'])
      expect(check({ mirrors }, text, 'mirror.test').ok).toBe(false)
  })

  test('is not dialled when a rule denies it', () => {
    expect(check({ deny: ['198.51.100.10'] }, '198.51.100.10')).toMatchObject({
      ok: false,
      reason: 'denied-by-rule',
    })
    expect(check({ deny: ['198.51.100.10:80'] }, '198.51.100.10')).toEqual({ ok: true })
    expect(check({ deny: ['10.0.0.5'], mirrors: ['allowed.test'] }, '10.0.0.5').ok).toBe(false)
  })

  test('is not dialled offline', () => {
    expect(check({ offline: true }, '198.51.100.10')).toMatchObject({ ok: false, reason: 'offline' })
  })

  test('a literal that no rule names is not dialled by this way either', () => {
    const address = '198.51.100.10' as Address
    expect(checkDial(compiled({}), address, { kind: 'address', address, port: 443 as Port }).ok).toBe(false)
  })
})

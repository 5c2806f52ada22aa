import { describe, expect, test } from 'bun:test'
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import fc from 'fast-check'
import { type Host, isLocalName, isLoopbackName, isUnder, parseHost } from './host.ts'
import { isWellFormedPunycode } from './punycode.ts'

const host = (text: string): Host => {
  const parsed = parseHost(text)
  if (!parsed.ok) throw new Error(`${text}: ${parsed.why}`)
  return parsed.value
}

describe('a host name has one spelling', () => {
  test.each([
    ['allowed.test', 'allowed.test'],
    ['ALLOWED.TEST', 'allowed.test'],
    ['aLLowed.tEst', 'allowed.test'],
    ['Allowed.Test.', 'allowed.test'],
    ['x', 'x'],
    ['3com.example', '3com.example'],
    ['r3---sn-abc.example.com', 'r3---sn-abc.example.com'],
    ['1.2.3.4.example.com', '1.2.3.4.example.com'],
    ['0x7f.example.com', '0x7f.example.com'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
    [`${'a'.repeat(63)}.test`, `${'a'.repeat(63)}.test`],
  ])('%j is read as %j', (text, canonical) => {
    expect(parseHost(text)).toEqual({ ok: true, value: canonical as Host })
  })

  test('253 characters are a name, with or without a trailing dot, and 254 are not', () => {
    const longest = `${'a.'.repeat(126)}a`
    expect(longest).toHaveLength(253)
    expect(parseHost(longest).ok).toBe(true)
    expect(parseHost(`${longest}.`).ok).toBe(true)
    expect(parseHost(`b${longest}`).ok).toBe(false)
    expect(parseHost(`b${longest}.`).ok).toBe(false)
  })
})

/** Spellings that some resolver, URL parser or C library takes for something else, by the kind of confusion. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  'numbers that C libraries read as an address': [
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0.0.1',
    '0x7f.1',
    '0X7F.1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.01',
    '0127.0.0.1',
    '0',
    '00',
    '0x',
    '0.0.0.0',
    '127.0.0.1',
    '127.0.0.1.',
    '256.1.1.1',
    '1.2.3.4.5',
    'example.0x7f',
    'example.1',
  ],
  'IPv6 and zone ids': ['::1', 'fe80::1%lo', '::1%lo', '::ffff:127.0.0.1%x.allowed.test', 'fe80--1%25lo'],
  'broken labels': [
    '',
    '.',
    '..',
    'allowed.test..',
    '..allowed.test',
    '.allowed.test',
    'allowed..test',
    'allowed-.test',
    '-allowed.test',
    'allowed.test-',
    `${'a'.repeat(64)}.test`,
    `allowed.test${'.a'.repeat(140)}`,
  ],
  delimiters: [
    'allowed.test@evil.test',
    'evil.test@allowed.test',
    'evil.test#.allowed.test',
    'evil.test/.allowed.test',
    'evil.test?.allowed.test',
    'evil.test\\.allowed.test',
    'evil.test;.allowed.test',
    'evil.test,allowed.test',
    'evil.test&allowed.test',
    'evil.test:443',
    'https://allowed.test',
    'allowed.test/',
    '*.allowed.test',
    'allowed.test"',
    "allowed.test'",
    'allowed$test',
    '{allowed}.test',
  ],
  'spaces and control characters': [
    'evil.test\0.allowed.test',
    '127.0.0.1\0.allowed.test',
    'allowed.test\0',
    'allowed.test\n',
    'allowed.test\r\nX: y',
    'allowed.test\t',
    ' allowed.test',
    'allowed.test ',
    'evil.test allowed.test',
    'allowed.test\x7f',
    'allowed.test\x1b[2K',
  ],
  'percent-encoding': [
    'evil.test%2eallowed.test',
    '%61llowed.test',
    'allowed.test%20',
    '127.0.0.1%23.allowed.test',
    '%00.test',
  ],
  'characters outside ASCII': [
    '\uff11\uff12\uff17.0.0.1',
    '①②⑦.⓪.⓪.①',
    '127。0。0。1',
    'allowed\uff0etest',
    'lo\u00adcalhost',
    'lo\u200bcalhost',
    'lo\u2060calhost',
    '\u212aube.test',
    '\u2102.test',
    'a\u0338llowed.test',
    '\u0430llowed.test',
    'allowed\u202e.test',
    'fa\u00df.test',
    '\u200ballowed.test',
    'allowed.test\u200b',
    'allowed.test\ud800',
    '\u{1f600}.test',
  ],
  'punycode that does not decode': [
    'xn--0000h',
    'xn--.test',
    'xn---.test',
    'xn--abc-.test',
    'xn---abc.test',
    'xn--99999999.test',
    'xn--a-zzzzzzzz.test',
    'xn--zz999.test',
  ],
  brackets: [
    '[127.0.0.1]',
    '[::1]',
    '[[::1]]',
    '[::1]x',
    '[]',
    '[::1%25eth0]',
    '[::ffff:127.0.0.1%25x.allowed.test]',
  ],
}

for (const [kind, spellings] of Object.entries(REFUSED))
  describe(`a host name is refused for ${kind}`, () => {
    test.each(spellings.map(text => [text]))('%j', text => {
      const parsed = parseHost(text)
      expect(parsed.ok).toBe(false)
      // Nothing of a hostile name is repeated in the reason: it is safe in a log or on a terminal.
      if (!parsed.ok) expect(parsed.why).toMatch(/^[ -~“”…]+$/)
    })
  })

test('a name outside ASCII is refused with the advice to write punycode', () => {
  expect(parseHost('bücher.example')).toMatchObject({ ok: false, fix: expect.stringContaining('punycode') })
})

test('a homograph in punycode is another name, not the one it looks like', () => {
  expect(host('xn--llowed-4nf.test')).not.toBe(host('allowed.test'))
  expect(host('XN--LLOWED-4NF.TEST')).toBe(host('xn--llowed-4nf.test'))
})

test('whatever a URL parser makes of a Unicode name is well-formed punycode here', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }), text => {
      const ascii = domainToASCII(`${text}.example`)
      const label = ascii.split('.')[0] ?? ''
      fc.pre(label.startsWith('xn--') && label.length <= 63)
      expect(isWellFormedPunycode(label)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})

test('an accepted name is read as itself by the URL parser, or not at all', () => {
  const label = fc.stringMatching(/^[a-zA-Z0-9x-]{1,12}$/)
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 4 }), labels => {
      const parsed = parseHost(labels.join('.'))
      fc.pre(parsed.ok)
      if (!parsed.ok) return
      expect(isIP(parsed.value)).toBe(0)
      expect(parseHost(parsed.value)).toEqual(parsed)
      if (URL.canParse(`http://${parsed.value}/`))
        expect(new URL(`http://${parsed.value}/`).hostname).toBe(parsed.value)
    }),
    { numRuns: 2000 },
  )
})

test('a subdomain is under its domain; the domain itself and look-alikes are not', () => {
  const suffix = host('allowed.test')
  expect(isUnder(host('a.allowed.test'), suffix)).toBe(true)
  expect(isUnder(host('a.b.allowed.test'), suffix)).toBe(true)
  for (const other of ['allowed.test', 'evilallowed.test', 'allowed.test.evil.test', 'allowedxtest', 'test'])
    expect(isUnder(host(other), suffix)).toBe(false)
})

test('names of the machine itself are known, and are local names', () => {
  for (const name of ['localhost', 'LocalHost.', 'x.localhost', 'localhost.localdomain', 'ip6-localhost']) {
    expect(isLoopbackName(host(name))).toBe(true)
    expect(isLocalName(host(name))).toBe(true)
  }
  for (const name of ['localhost.example.com', 'notlocalhost', 'example.com'])
    expect(isLoopbackName(host(name))).toBe(false)
})

test('single labels and names of the local network are local names', () => {
  for (const name of ['intranet', 'printer.local', 'host.docker.internal', 'nas.lan', 'x.home.arpa'])
    expect(isLocalName(host(name))).toBe(true)
  for (const name of ['example.com', 'local.example', 'internal.test'])
    expect(isLocalName(host(name))).toBe(false)
})

test('an underscore is a letter like another', () => {
  for (const name of ['_dmarc.example.com', 'my_service.internal', 'a_b', '_', 'x__y_.test'])
    expect(parseHost(name.toUpperCase())).toEqual({ ok: true, value: name } as never)
  expect(parseHost('0x7f_.1').ok).toBe(false)
})

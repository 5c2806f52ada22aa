import { isIP } from 'node:net'
import { parseAddress } from '../../src/policy/network/address.ts'
import { classifyAddress } from '../../src/policy/network/address-class.ts'
import { parseAllowRule, parseDenyRule } from '../../src/policy/network/endpoint.ts'
import { parseHost } from '../../src/policy/network/host.ts'
import { printRule } from '../../src/policy/network/net-rule.ts'
import { parsePort } from '../../src/policy/network/port.ts'
import type { Parsed } from '../../src/policy/source.ts'
import { fuzz } from './fuzz.ts'

const HOSTS = [
  'allowed.test',
  'A.Allowed.Test.',
  'xn--bcher-kva.example',
  'xn--llowed-4nf.test',
  '127.0.0.1',
  '0x7f.1',
  '::ffff:127.0.0.1',
  'fe80::1%lo',
  '[::1]',
  'evil.test\0.allowed.test',
  'lo\u00adcalhost',
  '\uff11\uff12\uff17.0.0.1',
]
const ENTRIES = [
  'allowed.test:443',
  '*.allowed.test',
  '203.0.113.7:5432',
  '[2001:db9::7]:22',
  'host.pen.internal:80',
  'https://user:pass@allowed.test:8443/x',
  ' allowed.test',
  '[::ffff:198.51.100.10]:80',
  '*.co.uk',
  'localhost:1',
]
const WORDS = [
  '.',
  '..',
  ':',
  '::',
  '*',
  '*.',
  '%',
  '%2e',
  '@',
  '[',
  ']',
  '/',
  '#',
  '\\',
  '\0',
  '\n',
  ' ',
  'xn--',
  '0x',
  '127',
  'localhost',
  'pen.internal',
  '443',
  '65536',
  'https://',
  'ffff:',
]

const check = (holds: boolean, claim: string): void => {
  if (!holds) throw new Error(claim)
}

/** Each byte becomes one character, or the bytes are decoded as UTF-8: NUL, controls and odd Unicode both ways. */
const readings = (input: Uint8Array): string[] => [
  Buffer.from(input).toString('latin1'),
  Buffer.from(input).toString('utf8'),
]

const checkReason = (parsed: Parsed<unknown>): void => {
  if (!parsed.ok)
    check(/^[ -~…“”]+$/.test(`${parsed.why}${parsed.fix ?? ''}`), 'a reason holds hostile characters')
}

fuzz('every parser reads an accepted name the same', {
  seeds: HOSTS,
  dictionary: WORDS,
  run: input => {
    for (const text of readings(input)) {
      const host = parseHost(text)
      checkReason(host)
      if (!host.ok) continue
      const name = host.value
      check(
        /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/.test(name),
        'an accepted name is not canonical',
      )
      check(text.toLowerCase().replace(/\.$/, '') === name, 'more than case and one trailing dot was folded')
      const again = parseHost(name)
      check(again.ok && again.value === name, 'parsing is not idempotent')
      check(isIP(name) === 0 && !parseAddress(name).ok, 'a name is an address')
      const url = `http://${name}/`
      check(!URL.canParse(url) || new URL(url).hostname === name, 'a URL parser reads another host')
    }
  },
})

fuzz('the system reads an accepted address the same', {
  seeds: [...HOSTS, '2001:db8::1:0:0:1', '64:ff9b::c633:640a', '::', '255.255.255.255'],
  dictionary: WORDS,
  run: input => {
    for (const text of readings(input)) {
      const address = parseAddress(text)
      checkReason(address)
      if (!address.ok) continue
      check(isIP(text) !== 0 && isIP(address.value) === isIP(text), 'the system sees no address')
      const again = parseAddress(address.value)
      check(again.ok && again.value === address.value, 'parsing is not idempotent')
      check(!parseHost(text).ok, 'an address is a name')
      if (/^(?:127\.|0\.|::1$|::$|::ffff:)/.test(address.value))
        check(classifyAddress(address.value) !== 'public', 'a local address counts as public')
    }
  },
})

fuzz('an accepted rule prints as an entry that means the same', {
  seeds: ENTRIES,
  dictionary: WORDS,
  run: input => {
    const isPublicSuffix = (name: string): boolean => name === 'co.uk'
    for (const text of readings(input))
      for (const parse of [parseAllowRule, parseDenyRule]) {
        const rule = parse(text, isPublicSuffix)
        checkReason(rule)
        if (!rule.ok) continue
        const again = parse(printRule(rule.value), isPublicSuffix)
        check(again.ok && Bun.deepEquals(again.value, rule.value), 'a printed rule means something else')
      }
  },
})

fuzz('an accepted port is its own decimal spelling', {
  seeds: ['443', '65535', '65536', '0', '00443', '0x1bb', '4.43e2', ' 443', '443,80', '４４３'],
  dictionary: WORDS,
  maxBytes: 64,
  seconds: 1,
  run: input => {
    for (const text of readings(input)) {
      const port = parsePort(text)
      checkReason(port)
      if (port.ok)
        check(
          String(port.value) === text && port.value >= 1 && port.value <= 65535,
          'an odd port was accepted',
        )
    }
  },
})

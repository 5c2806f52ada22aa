import { describe, expect, test } from 'bun:test'
import { isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { type Address, parseAddress } from './address.ts'
import { type AddressClass, classifyAddress, embeddedIPv4 } from './address-class.ts'

const address = (text: string): Address => {
  const parsed = parseAddress(text)
  if (!parsed.ok) throw new Error(`${text}: ${parsed.why}`)
  return parsed.value
}

describe('an address has one spelling', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['::', '::'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['2001:DB8::0007', '2001:db8::7'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['1:0:3:4:5:6:7:8', '1:0:3:4:5:6:7:8'],
    ['1::', '1::'],
    ['::ffff:127.0.0.1', '::ffff:7f00:1'],
    ['::127.0.0.1', '::7f00:1'],
    ['::ffff:0:127.0.0.1', '::ffff:0:7f00:1'],
  ])('%j is read as %j', (text, canonical) => {
    expect(parseAddress(text)).toEqual({ ok: true, value: canonical as Address })
  })
})

describe('an address is refused in every other spelling', () => {
  test.each([
    ...[
      '',
      '127.1',
      '127.0.1',
      '2130706433',
      '0x7f000001',
      '0x7f.0.0.1',
      '0177.0.0.1',
      '127.0.0.01',
      '00.0.0.0',
    ],
    ...[
      '256.0.0.1',
      '1.2.3',
      '1.2.3.4.5',
      '1.2.3.4.',
      '.1.2.3.4',
      ' 1.2.3.4',
      '1.2.3.4\n',
      '1.2.3.4\0',
      '１.2.3.4',
    ],
    ...[
      '+1.2.3.4',
      '1.2.3.-4',
      '1e1.2.3.4',
      ':',
      ':::',
      '1:',
      ':1',
      '1::2::3',
      '12345::',
      'g::',
      '::1%lo',
      '::1%25lo',
    ],
    ...[
      'fe80::1%x.allowed.test',
      '::ffff:127.0.0.1%x.allowed.test',
      '[::1]',
      '::ffff:0177.0.0.1',
      '::ffff:0x7f.0.0.1',
    ],
    ...[
      '::ffff:127.1',
      '::1.2.3.4:5',
      '1.2.3.4::',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      '1:2:3:4:5:6:7:8::',
      '::ffff:256.0.0.1',
    ],
    ...['1:2:3:4:5:6:7:1.2.3.4', '::1 ', '::1/128', '0'.repeat(50), `${'0:'.repeat(40)}1`],
  ])('%j', text => {
    expect(parseAddress(text).ok).toBe(false)
  })
})

test('any four bytes, and any eight groups however they are written, come back as one address that the system knows', () => {
  const quad = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)).map(bytes => bytes.join('.'))
  fc.assert(fc.property(quad, text => void expect(address(text) as string).toBe(text)))
  fc.assert(
    fc.property(fc.ipV6(), text => {
      const canonical = address(text)
      expect(isIPv6(canonical)).toBe(true)
      expect(address(canonical)).toBe(canonical)
      // An independent implementation agrees about which address it is, where it reads it at all.
      const url = `http://[${text}]/`
      if (URL.canParse(url)) expect(address(new URL(url).hostname.slice(1, -1))).toBe(canonical)
      expect(new URL(`http://[${canonical}]/`).hostname).toBe(`[${canonical}]`)
    }),
    { numRuns: 1000 },
  )
})

test('nothing is an address here that is none to the system', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[0-9a-fx:.]{1,24}$/), text => {
      if (parseAddress(text).ok) expect(isIPv4(text) || isIPv6(text)).toBe(true)
      else expect(isIPv4(text) || (isIPv6(text) && !text.includes('%'))).toBe(false)
    }),
    { numRuns: 5000 },
  )
})

/** First, last and inner addresses of every special network, and their neighbours outside. */
const CLASSES: Readonly<Record<AddressClass, readonly string[]>> = {
  public: [
    ...[
      '1.1.1.1',
      '9.255.255.255',
      '11.0.0.0',
      '100.63.255.255',
      '100.128.0.0',
      '126.255.255.255',
      '128.0.0.0',
    ],
    ...[
      '169.253.255.255',
      '169.255.0.0',
      '172.15.255.255',
      '172.32.0.0',
      '192.0.1.0',
      '192.167.255.255',
      '192.169.0.0',
    ],
    ...['192.88.98.255', '192.88.100.0', '198.17.255.255', '198.20.0.0', '223.255.255.255', '168.63.129.17'],
    ...['192.0.2.1', '198.51.100.10', '203.0.113.7'],
    ...[
      '2001:200::1',
      '2001:db9::7',
      '2001:db7:ffff::1',
      '2003::1',
      '2606:4700::1111',
      '2a00::1',
      '3ffe::1',
      '2000::',
      '3fff:1000::',
    ],
  ],
  unspecified: ['0.0.0.0', '0.0.0.1', '0.255.255.255', '::'],
  loopback: ['127.0.0.1', '127.0.0.0', '127.255.255.254', '127.64.0.1', '::1', '0:0:0:0:0:0:0:1'],
  private: [
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    'fc00::1',
    'fdff::1',
    'fd00:ec2::255',
  ],
  'link-local': ['169.254.0.1', '169.254.42.41', '169.254.255.255', 'fe80::1', 'febf:ffff::1'],
  metadata: [
    '169.254.0.23',
    '169.254.42.42',
    'fd00:42::42',
    'fd00:ec2::23',
    '169.254.169.254',
    '169.254.170.2',
    '169.254.170.23',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    'fd00:ec2::254',
    'fd20:ce::254',
  ],
  cgnat: ['100.64.0.0', '100.64.0.1', '100.127.255.254', '100.100.100.201'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff00::'],
  broadcast: ['255.255.255.255'],
  benchmark: ['198.18.0.0', '198.19.255.255', '2001:2::1'],
  documentation: ['2001:db8::1', '2001:db8:ffff:ffff::', '3fff::1', '3fff:fff::1'],
  'embedded-v4': [
    ...[
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::ffff:198.51.100.10',
      '::127.0.0.1',
      '::2',
      '::ffff:0:127.0.0.1',
    ],
    ...[
      '64:ff9b::7f00:1',
      '64:ff9b::c633:640a',
      '64:ff9b:1::7f00:1',
      '64:ff9b:1:ffff::',
      '2002:7f00:1::1',
      '2001::1',
      '2001:0:ffff::',
    ],
  ],
  reserved: [
    ...[
      '192.0.0.1',
      '192.88.99.1',
      '240.0.0.1',
      '255.255.255.254',
      '100::1',
      '5f00::1',
      '4000::',
      '1::1',
      'fec0::1',
      'feff::1',
    ],
    ...['64:ff9b:2::1', '::1:0:0:0', '2001:10::1', '2001:1ff::1', '8000::', 'e000::', 'fb00::', 'fe00::1'],
  ],
}

for (const [kind, members] of Object.entries(CLASSES))
  test(`${kind} addresses are distinguished from their neighbours`, () => {
    for (const member of members)
      expect(`${member} ${classifyAddress(address(member))}`).toBe(`${member} ${kind}`)
  })

test('what is no address at all is not public', () => {
  for (const text of ['', 'allowed.test', '127.1']) expect(classifyAddress(text as Address)).toBe('reserved')
})

test('an embedded IPv4 address is found', () => {
  for (const text of [
    '::ffff:198.51.100.10',
    '::198.51.100.10',
    '64:ff9b::c633:640a',
    '2002:c633:640a::1',
    '2001:0:1:2:3:4:39cc:9bf5',
  ])
    expect(embeddedIPv4(address(text)) as string | undefined).toBe('198.51.100.10')
  expect(embeddedIPv4(address('2606:4700::1111'))).toBeUndefined()
  expect(embeddedIPv4(address('198.51.100.10'))).toBeUndefined()
})

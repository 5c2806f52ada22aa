import { describe, expect, test } from 'bun:test'
import { clientHello } from '../../test/gateway/hello.ts'
import { classifyFirstBytes, MAX_UNDECIDED } from './first-bytes.ts'

const kindOf = (text: string): string => {
  const first = classifyFirstBytes(Buffer.from(text, 'latin1'))
  return first.kind === 'more' ? `more, likely ${first.likely}` : first.kind
}

describe('first bytes', () => {
  test('of TLS are known by two of them', () => {
    expect(classifyFirstBytes(clientHello()).kind).toBe('tls')
    expect(kindOf('\x16')).toBe('more, likely tls')
    expect(kindOf('\x16\x03')).toBe('tls')
    expect(kindOf('\x16\x02')).toBe('opaque')
  })

  test('of SSL 2 are refused, and of other binary protocols are not', () => {
    expect(kindOf('\x80\x2e\x01\x03\x01')).toBe('refused')
    expect(kindOf('\x80\x2e\x01\x00\x02')).toBe('refused')
    expect(kindOf('\x80\x2e\x00')).toBe('opaque')
  })

  for (const request of [
    'GET / HTTP/1.1\r\n',
    'get / http/1.1\n',
    'FOO / HTTP/1.0\r\n',
    '\r\n\r\nGET / HTTP/1.1\r\n',
    '\t POST / HTTP/1.1\r\n',
    'PRI * HTTP/2.0\r\n',
    'GET /\r\n',
    'GET /x\0 HTTP/1.1\r\n',
    'CONNECT a:1 HTTP/1.1\r\n',
    'X y\x01z HTTP/1.1\n',
  ])
    test(`${JSON.stringify(request)} could be a request to some server`, () =>
      expect(kindOf(request)).toBe('http'))

  for (const [protocol, bytes] of Object.entries({
    SSH: 'SSH-2.0-OpenSSH_9.2\r\n',
    Redis: '*1\r\n$4\r\nPING\r\n',
    PostgreSQL: '\0\0\0\x08\x04\xd2\x16\x2f',
    memcached: 'get key\r\n',
    git: '0032git-upload-pack /project.git\0host=x\0',
    rsync: '@RSYNCD: 31.0\n',
    NATS: 'CONNECT {"verbose":false}\r\n',
    STOMP: 'CONNECT\naccept-version:1.2\n',
    SIP: 'OPTIONS sip:a@b SIP/2.0\r\n',
    FIX: '8=FIX.4.2\x019=1',
    AMQP: 'AMQP\0\0\x09\x01',
    XMPP: "<?xml version='1.0'?>",
    SMTP: 'EHLO allowed.test\r\n',
    MQTT: '\x10\x0c\0\x04MQTT',
  }))
    test(`of ${protocol} are nobody’s business`, () => expect(kindOf(bytes)).toBe('opaque'))

  test('that may become a request wait for the end of their line', () => {
    expect(kindOf('')).toBe('more, likely opaque')
    expect(kindOf('GE')).toBe('more, likely opaque')
    expect(kindOf('GET')).toBe('more, likely http')
    expect(kindOf('GET /')).toBe('more, likely http')
    expect(kindOf('XYZ /')).toBe('more, likely opaque')
    expect(kindOf('\r\n')).toBe('more, likely opaque')
  })

  test('that never decide are refused', () => {
    expect(kindOf(`XYZ ${'a'.repeat(MAX_UNDECIDED)}`)).toBe('refused')
    expect(kindOf('A'.repeat(MAX_UNDECIDED + 1))).toBe('refused')
    expect(kindOf('\r\n'.repeat(MAX_UNDECIDED))).toBe('refused')
  })

  test('that name another client are refused', () => {
    expect(kindOf('PROXY TCP4 198.51.100.1 198.51.100.2 1 2\r\n')).toBe('refused')
    expect(kindOf('\r\n\r\n\0\r\nQUIT\n\x21')).toBe('refused')
    expect(kindOf('\r\n\r\n\0\r\nQUI')).toBe('more, likely opaque')
  })
})

import { describe, expect, test } from 'bun:test'
import { clientHello } from '../../test/gateway/hello.ts'
import { classifyFirstBytes, MAX_UNDECIDED } from './first-bytes.ts'
import { readClientHello } from './tls/client-hello.ts'

const kindOf = (text: string): string => {
  const first = classifyFirstBytes(Buffer.from(text, 'latin1'))
  return first.kind === 'more' ? `more, likely ${first.likely}` : first.kind
}

describe('first bytes', () => {
  test('of TLS are recognised by two bytes', () => {
    expect(classifyFirstBytes(clientHello()).kind).toBe('tls')
    expect(kindOf('\x16')).toBe('more, likely tls')
    expect(kindOf('\x16\x03')).toBe('tls')
  })

  for (const [what, bytes] of Object.entries({
    'an empty change of cipher': '\x14\x03\x01\0\0',
    'a warning': '\x15\x03\x01\0\x02\x01\x5a',
    'empty data': '\x17\x03\x03\0\0',
    'a heartbeat': '\x18\x03\x01\0\x03\x01\0\0',
  }))
    test(`of TLS may be ${what}, and its reader refuses what follows`, () => {
      const first = Buffer.concat([Buffer.from(bytes, 'latin1'), clientHello()])
      expect(classifyFirstBytes(first).kind).toBe('tls')
      expect(readClientHello(first, 65_536)).toMatchObject({ kind: 'bad', why: 'not a handshake record' })
    })

  test('of TLS with a version that some servers ignore are refused', () => {
    for (const version of ['\0\0', '\x02\0', '\x04\0', '\x7f\x1c']) {
      expect(kindOf(`\x16${version}\0\x2e\x01`)).toBe('refused')
      expect(kindOf(`\x16${version}\0\0\x16`)).toBe('refused')
      expect(kindOf(`\x15${version}\0\x02\x01\x5a`)).toBe('refused')
      for (const type of ['\x15', '\x16'])
        expect(kindOf(`${type}${version}\0\x02`)).toBe('more, likely opaque')
    }
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
    'POST /\r\n',
    'POST * RTSP/1.0\r\n',
    'SOURCE / ICE/1.0\n',
    'Foo / bar\r\n',
    'PUT http://evil.test/\r\n',
    'get http://evil.test/\r\n',
  ])
    test(`${JSON.stringify(request)} counts as a request`, () => expect(kindOf(request)).toBe('http'))

  for (const [protocol, bytes] of Object.entries({
    SSH: 'SSH-2.0-OpenSSH_9.2\r\n',
    Redis: '*1\r\n$4\r\nPING\r\n',
    'Redis by hand': 'KEYS *\r\n',
    PostgreSQL: '\0\0\0\x08\x04\xd2\x16\x2f',
    memcached: 'get key\r\n',
    'memcached behind a web server': 'get /index.html\r\n',
    git: '0032git-upload-pack /project.git\0host=x\0',
    rsync: '@RSYNCD: 31.0\n',
    NATS: 'CONNECT {"verbose":false}\r\n',
    STOMP: 'CONNECT\naccept-version:1.2\n',
    SIP: 'OPTIONS sip:a@b SIP/2.0\r\n',
    FIX: '8=FIX.4.2\x019=1',
    AMQP: 'AMQP\0\0\x09\x01',
    XMPP: "<?xml version='1.0'?>",
    SMTP: 'EHLO allowed.test\r\n',
    'a MySQL login of 277 bytes': '\x15\x01\0\x01\x85\xa2\x0f\0',
    'a MySQL login of 278 bytes': '\x16\x01\0\x01\x85\xa2\x0f\0',
    'a MongoDB message of 277 bytes': '\x15\x01\0\0\x02\0\0\0',
    'a MongoDB message of 278 bytes': '\x16\x01\0\0\0\0\0\0',
    MQTT: '\x10\x0c\0\x04MQTT',
  }))
    test(`of ${protocol} are opaque`, () => expect(kindOf(bytes)).toBe('opaque'))

  test('that may become a request wait for the end of their line', () => {
    expect(kindOf('')).toBe('more, likely opaque')
    expect(kindOf('GE')).toBe('more, likely opaque')
    expect(kindOf('GET')).toBe('more, likely http')
    expect(kindOf('GET /')).toBe('more, likely http')
    expect(kindOf('XYZ /')).toBe('more, likely opaque')
    expect(kindOf('\r\n')).toBe('more, likely opaque')
  })

  test('that stay undecided are refused', () => {
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

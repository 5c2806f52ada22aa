import { describe, expect, test } from 'bun:test'
import { ODD_REQUESTS } from '../../../test/attack/lenient/requests.ts'
import { classifyFirstBytes } from '../first-bytes.ts'
import { RequestScan } from './request-scan.ts'

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
const found = (text: string): string | undefined => new RequestScan().found(bytes(text))

/** The first bytes of a client in each protocol. */
const PROTOCOLS: Readonly<Record<string, string>> = {
  SSH: 'SSH-2.0-OpenSSH_9.2\r\n',
  PostgreSQL: '\0\0\0\x29\0\x03\0\0user\0me\0database\0host\0application_name\0psql\0\0',
  MySQL: '\x4f\0\0\x01\x85\xa2\x3f\0\0\0\0\x01\x21me\0\x14host\0mysql_native_password\0',
  'Redis by hand': 'SET key http://allowed.test/x\r\nGET host:1\r\n',
  Redis: '*2\r\n$3\r\nGET\r\n$6\r\nhost:1\r\n',
  memcached: 'set host:1 0 0 4\r\nhost\r\nget host:1\r\n',
  MQTT: '\x10\x20\0\x04MQTT\x04\xc2\0\x3c\0\x04host\0\x02me\0\x06secret',
  Kafka: '\0\0\0\x17\0\x12\0\x03\0\0\0\x01\0\x04kafka-client\0',
  AMQP: 'AMQP\0\0\x09\x01',
  git: '0035git-upload-pack /http/project.git\0host=allowed.test\0\0version=2\0',
  IRC: 'NICK me\r\nUSER me host server :Real: name\r\n',
  LDAP: '0\x1c\x02\x01\x01`\x17\x02\x01\x03\x04\x0ccn=host:admin\x80\x04pass',
  RTMP: '\x03\0\0\0\0\0\0\0\0http\x01\x02:/',
  'DNS over TCP': '\0\x1d\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04host\x04test\0\0\x01\0\x01',
  STOMP: 'CONNECT\naccept-version:1.2\nhost:allowed.test\n\n\0',
  NATS: 'CONNECT {"verbose":false,"url": "http://allowed.test/"}\r\nPING\r\n',
  XMPP: "<?xml version='1.0'?><stream:stream to='allowed.test' xmlns:stream='http://etherx.jabber.org/streams'>",
  syslog: '<34>Oct 11 22:14:15 host nginx: "GET /x HTTP/1.1" 200 5 "http://a.test/"\n<34>Oct 11 host su: x\n',
  SIP: 'OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/TCP host:5060\r\n\r\n',
  FIX: '8=FIX.4.2\x019=65\x0135=A\x0149=HOST\x01',
}

describe('the scan for a request inside another protocol', () => {
  for (const [protocol, said] of Object.entries(PROTOCOLS))
    test(`finds no request in ${protocol}`, () => {
      expect(found(said)).toBeUndefined()
      expect(classifyFirstBytes(bytes(said)).kind).toBe('opaque')
    })

  for (const request of ODD_REQUESTS)
    test(`${JSON.stringify(request).slice(0, 60)} does not pass`, () => {
      const first = classifyFirstBytes(bytes(request)).kind
      if (first === 'opaque') expect(found(request)).toBeDefined()
      else expect(first).not.toBe('more')
    })

  test('finds a field that arrives byte by byte', () => {
    const scan = new RequestScan()
    const parts = [...'{} / v\r\nHost: evil.test'].map(letter => scan.found(bytes(letter)))
    expect(parts.indexOf('a Host field')).toBe('{} / v\r\nHost'.length)
  })

  test('finds a field after any number of other bytes', () => {
    const scan = new RequestScan()
    for (let sent = 0; sent < 16; sent++) expect(scan.found(Buffer.alloc(65_536, 'a b '))).toBeUndefined()
    expect(scan.found(bytes(' / v\r\nHost: evil.test\r\n'))).toBe('a Host field')
  })

  test('a URL in a text is no target, unless it stands where a request line has its target', () => {
    for (const text of [
      'Package: x\nHomepage: http://a.test/\nFiles: see http://a.test/ for more\n',
      'Content-Length: 30\r\n\r\n{"a": "see http://a.test/ now"}',
    ])
      expect(found(text)).toBeUndefined()
    expect(found('Package: x\nHomepage: http://a.test/ x\n')).toBe('an absolute target')
  })
})

/** Requests for evil.test that no RFC allows, and that some server answers. */
const HOST = 'Host: evil.test\r\n\r\n'

const LINES = [
  'G:T / HTTP/1.1',
  '\x1cE\0T p://evil.test/ v',
  '\x1cGET / HTTP/1.1',
  'POST x HTTP/+1.1',
  'GET / HTTP/1.1',
  'get / http/1.1',
  '\r\n\r\n \tGET / HTTP/1.1',
  '\0GET / HTTP/1.1',
  '\x80\x2e\0 / HTTP/1.1',
  '\x16GET / HTTP/1.1',
  'GET\x1c/\x1fHTTP/1.1',
  'GET\xa0/\x85HTTP/1.0',
  'GET\x0b/\x0cHTTP/1.1',
  'GET\r/\rHTTP/1.1',
  '"GET" / HTTP/1.1',
  '<GET> / v',
  'get /x v',
  'a@b /x v',
  '{} / ICE/1.0',
  'X\n /x v',
  'SSH-2.0-x\r\nGET / HTTP/1.1',
  'SSH-2.0-x\n /x v',
  'EHLO x\r\nfoo / HTTP/1.1',
  'EHLO x y',
  '*1\r\n$4\r\nPING\r\nGET / HTTP/1.1',
  '*1 / v',
  '0032git-upload-pack / v',
  '0032git-upload-pack /project.git\0host=x HTTP/1.1',
  'MQTT\0 / v',
  'AMQP\0\0\x09\x01 / HTTP/1.1',
  '@RSYNCD: / v',
  '<?xml /x v',
  'KEYS * HTTP/1.1',
  'GET /\t\tHTTP/1.1',
  'GET / HTTP/1_1.0_1',
  'GET / HTTP/00000000000000000000000000000000000000000000001.1',
  'GET / HTTP/1.1\t \t',
  'GET\0 / HTTP/1.0',
  '\xe9 / HTTP/1.1',
  '- / -',
]

const FIELDS = [
  'host:evil.test\r\n\r\n',
  'Host : evil.test\r\n\r\n',
  '\tHOST:\tevil.test\r\n\r\n',
  'X: y\r\n Host: evil.test\r\n\r\n',
  'X: y\rHost: evil.test\r\n\r\n',
  'X: y\nHost: evil.test\n\n',
  '\x0bHost: evil.test\r\n\r\n',
]

/** Longer than the head that most servers accept. Java's reads 380 KiB. */
const LONG = 'x'.repeat(300_000)

export const ODD_REQUESTS: readonly string[] = [
  ...LINES.map(line => `${line}\r\n${HOST}`),
  ...LINES.slice(0, 6).map(line => `${line}\n${HOST.replaceAll('\r', '')}`),
  ...FIELDS.map(field => `a@b /x v\r\n${field}`),
  '<a> http://evil.test/ v\r\n\r\n',
  'X\n http://evil.test/ v\r\n\r\n',
  '\x1cGET http://evil.test/ HTTP/1.1\r\n\r\n',
  // The second request of a connection, after bytes that pass.
  `SSH-2.0-x\r\n\r\nGET / HTTP/1.1\r\n${HOST}`,
  `\0\0\0\x08\x04\xd2\x16\x2f\r\n\r\nGET / HTTP/1.1\r\n${HOST}`,
  `a@b /x v\r\n\r\na@b /x v\r\n${HOST}`,
  'a@b /x v\r\n\r\na@b http://evil.test/ v\r\n\r\n',
  'a@b /x v\r\nContent-Length: 5\r\n\r\na b cG:T http://evil.test/ v\r\n\r\n',
  'a@b /x v\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na b c\r\n0\r\n\r\nG:T http://evil.test/ v\r\n\r\n',
  // Behind many other bytes.
  `a@b /x v\r\nX: ${LONG}\r\n${HOST}`,
  `a@b /x v\r\nContent-Length: ${LONG.length}\r\n\r\n${LONG}GET / HTTP/1.1\r\n${HOST}`,
]

import { endToEnd, findHeadEnd } from '../../src/gateway/http/field.ts'
import { readRequestHead, readResponseHead } from '../../src/gateway/http/head.ts'
import { judgeRequest } from '../../src/gateway/http/judge.ts'
import { parseAuthority, printAuthority } from '../../src/gateway/http/target.ts'
import { DEFAULT_LIMITS } from '../../src/gateway/limits.ts'
import { parseHost } from '../../src/policy/network/host.ts'
import { parsePort } from '../../src/policy/network/port.ts'
import { fuzz } from './fuzz.ts'

const check = (holds: boolean, claim: string): void => {
  if (!holds) throw new Error(claim)
}

const name = parseHost('allowed.test')
const port = parsePort('80')
if (!name.ok || !port.ok) throw new Error('the fixture is wrong')
const endpoint = { to: { name: name.value }, port: port.value }

const SEEDS = [
  'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
  'GET http://allowed.test/x HTTP/1.1\r\nHost: allowed.test:80\r\nConnection: close, X\r\nX: y\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 5\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n',
  'CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n',
  'OPTIONS * HTTP/1.0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\n',
]
const WORDS = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  '\t',
  ' ',
  ':',
  'Host: evil.test\r\n',
  'Content-Length: 6\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer_Encoding: x\r\n',
  'evil.test',
  '@',
  '//',
  '#',
  '[::1]',
  '%00',
  'HTTP/1.1',
  '\x0b',
  '\x85',
  'Connection: Host\r\n',
]

/** Every byte at which a line-based reader could end or fold a line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for control characters
const STRAY = /[\0-\x08\x0a-\x1f\x7f]/

fuzz('an accepted request head has one reading, and names the host that it was judged by', {
  seeds: SEEDS,
  dictionary: WORDS,
  run: input => {
    const end = findHeadEnd(input, 0, DEFAULT_LIMITS.maxRequestHead)
    // In two steps, as bytes arrive: the same end.
    const half = findHeadEnd(input.subarray(0, input.length >> 1), 0, DEFAULT_LIMITS.maxRequestHead)
    if (half.kind === 'more') {
      const again = findHeadEnd(input, half.scanned, DEFAULT_LIMITS.maxRequestHead)
      check(again.kind === end.kind, 'a head in two parts ends differently')
    }
    if (end.kind !== 'end') return
    const head = readRequestHead(input.subarray(0, end.end), DEFAULT_LIMITS)
    if (head.kind === 'bad') return
    for (const field of head.fields)
      check(!STRAY.test(`${field.name}${field.value}`), 'a field can split a head')
    check(/^[\x21-\x7e\x80-\xff]+$/.test(head.target), 'an odd target')
    const keys = endToEnd(head.fields).map(field => field.key.replaceAll('_', '-'))
    check(!keys.includes('transfer-encoding') && !keys.includes('content-length'), 'framing is passed on')
    check(keys.filter(key => key === 'host').length <= 1, 'two Hosts are passed on')
    const judged = judgeRequest(head, { kind: 'fixed', isSecure: false, endpoint })
    check(judged.kind !== 'connect', 'a CONNECT to a fixed endpoint')
    if (judged.kind === 'forward') {
      check(/^allowed\.test(?::80)?$/.test(judged.host), 'another Host is spoken')
      check(judged.path.startsWith('/') || judged.path === '*', 'another target is spoken')
      check(/^[\x21-\x7e]+$/.test(judged.path), 'an odd target is spoken')
      if (head.host !== undefined)
        check(/^allowed\.test\.?(?::80)?$/i.test(head.host), 'another Host was accepted')
    }
    if (judged.kind === 'refused')
      check(/^[ -~…]+$/.test(judged.refusal.why), 'a reason repeats hostile bytes')
    const proxied = judgeRequest(head, { kind: 'proxy' })
    if (proxied.kind === 'forward')
      check(!/[^\x21-\x7e]/.test(proxied.host + proxied.path), 'an odd Host or target is spoken')
  },
})

fuzz('an accepted response head cannot split the answer', {
  seeds: SEEDS.slice(-1),
  dictionary: WORDS,
  run: input => {
    const end = findHeadEnd(input, 0, DEFAULT_LIMITS.maxResponseHead)
    if (end.kind !== 'end') return
    const head = readResponseHead(input.subarray(0, end.end), 'GET', DEFAULT_LIMITS)
    if (head.kind === 'bad') return
    check(head.status >= 100 && head.status <= 999, 'an odd status')
    check(!STRAY.test(head.reason), 'a reason can split a head')
    for (const field of head.fields)
      check(!STRAY.test(`${field.name}${field.value}`), 'a field can split a head')
  },
})

fuzz('an accepted authority prints as one that means the same', {
  seeds: ['allowed.test:443', '[2001:db8::1]:80', '198.51.100.10', 'allowed.test.', 'user@allowed.test:80'],
  dictionary: WORDS,
  maxBytes: 300,
  seconds: 1,
  run: input => {
    const parsed = parseAuthority(Buffer.from(input).toString('latin1'))
    if (!parsed.ok) return
    const again = parseAuthority(printAuthority(parsed.value.to, parsed.value.port))
    check(again.ok && Bun.deepEquals(again.value, parsed.value), 'a printed authority means something else')
  },
})

import { classifyFirstBytes } from '../../src/gateway/first-bytes.ts'
import { readClientHello } from '../../src/gateway/tls/client-hello.ts'
import { clientHello, extension } from '../gateway/hello.ts'
import { fuzz } from './fuzz.ts'

const MAX = 65_536

const check = (holds: boolean, claim: string): void => {
  if (!holds) throw new Error(claim)
}

const SEEDS = [
  clientHello(),
  clientHello({ names: [] }),
  clientHello({ names: ['allowed.test', 'evil.test'] }),
  clientHello({ perRecord: 30 }),
  clientHello({
    extensions: [extension(0xfe0d, Buffer.from('ech')), extension(16, Buffer.from('\0\x03\x02h2'))],
  }),
]

fuzz('a ClientHello reads the same whole and in parts, and contains its name', {
  seeds: SEEDS,
  dictionary: ['\x16\x03\x01', '\0\0', 'allowed.test', 'evil.test', '\x01\0\0', '\0\x0c'],
  run: input => {
    const whole = readClientHello(input, MAX)
    if (whole.kind === 'more') {
      check(whole.need > input.length, 'more is asked for than there is, but it is there')
      check(whole.need <= MAX, 'more is asked for than is allowed')
    }
    if (whole.kind === 'hello' && whole.serverName !== undefined) {
      check(whole.serverName.length > 0 && whole.serverName.length <= input.length, 'a name from nowhere')
      check(classifyFirstBytes(input).kind === 'tls', 'a hello is not taken for TLS')
    }
    // A reader that has seen less may wait or refuse, but never accept something else.
    for (const length of [1, 4, 6, input.length >> 1, input.length - 1]) {
      if (length <= 0 || length >= input.length) continue
      const part = readClientHello(input.subarray(0, length), MAX)
      check(part.kind !== 'bad' || whole.kind === 'bad', 'a part is refused of what is accepted whole')
      if (part.kind === 'hello')
        check(whole.kind === 'hello' && whole.serverName === part.serverName, 'more bytes change the name')
    }
  },
})

fuzz('bytes that could still become TLS or HTTP are never passed as something else', {
  seeds: [
    ...SEEDS,
    'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n',
    '\r\n POST /x HTTP/1.0\r\n\r\n',
    'FOO bar HTTP/1.1\r\n',
    'SSH-2.0-x\r\n',
    'PROXY TCP4 198.51.100.1 198.51.100.2 1 2\r\n',
    '\r\n\r\n\0\r\nQUIT\n',
    new Uint8Array([0x80, 0x2e, 1, 3, 1, 0, 21]),
  ],
  dictionary: ['GET ', ' HTTP/1.1', 'http/1.0', '\r\n', '\n', '\t', '\0', 'HTTP / 1'],
  maxBytes: 512,
  run: input => {
    const whole = classifyFirstBytes(input)
    for (let length = 0; length <= input.length; length++) {
      const part = classifyFirstBytes(input.subarray(0, length))
      if (part.kind === 'more') continue
      check(part.kind === whole.kind, `${part.kind} after ${length} bytes, ${whole.kind} in the end`)
      break
    }
    if (whole.kind !== 'opaque') return
    const line =
      Buffer.from(input)
        .toString('latin1')
        .replace(/^[\t-\r ]+/, '')
        .split('\n')[0] ?? ''
    check(!/^[A-Z]+ [\x21-\x7e]+ HTTP\/1\.[01]\r?$/.test(line), 'a request passes as something else')
  },
})

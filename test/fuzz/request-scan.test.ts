import { classifyFirstBytes } from '../../src/gateway/first-bytes.ts'
import { RequestScan } from '../../src/gateway/http/request-scan.ts'
import { ODD_REQUESTS } from '../attack/lenient/requests.ts'
import { fuzz } from './fuzz.ts'

const check = (holds: boolean, claim: string): void => {
  if (!holds) throw new Error(claim)
}

// What Python calls white space, in one byte.
// biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for control characters
const PYTHON_SPACE = /[\t-\r\x1c-\x20\x85\xa0]+/
const HOST_LINE = /^\s*host\s*:\s*evil/i

/** How uWSGI reads a request: the first two spaces end method and target, whatever is in them. */
function likeUwsgi(text: string): boolean {
  const [, rest] = /^[^ ]* [^ ]* (.*)/s.exec(text) ?? []
  if (rest === undefined) return false
  return rest
    .split('\r\n')
    .slice(1)
    .some(line => HOST_LINE.test(line))
}

/** How Java reads a request: the same, but only CR LF ends a line. */
function likeJava(text: string): boolean {
  const [first = '', ...lines] = text.replace(/^(\r\n)+/, '').split('\r\n')
  const [, target] = first.split(' ')
  if (target === undefined) return false
  return /^[a-z]+:\/\/evil/i.test(target) || lines.some(line => HOST_LINE.test(line))
}

/** How Python reads a request: a line, split at white space, with a version at its end or GET at its start. */
function likePython(text: string): boolean {
  const [first = '', ...lines] = text.split('\n')
  const words = first.split(PYTHON_SPACE).filter(word => word !== '')
  const isRequest =
    words.length === 3 ? /^HTTP\//.test(words[2] ?? '') : words.length === 2 && words[0] === 'GET'
  return isRequest && lines.some(line => line.split('\r').some(part => HOST_LINE.test(part)))
}

fuzz('what a lenient server reads as a request for another host does not pass as another protocol', {
  seeds: ODD_REQUESTS.map(text => Buffer.from(text, 'latin1')),
  dictionary: [
    ' ',
    '\t',
    '\r\n',
    '\n',
    '\r',
    '\0',
    '\x1c',
    ':',
    '/',
    ' HTTP/1.1',
    'Host: evil.test\r\n',
    'http://',
  ],
  maxBytes: 512,
  run: input => {
    const found = new RequestScan().found(input)
    const inParts = new RequestScan()
    const parts = [...input].map(byte => inParts.found(Uint8Array.of(byte)))
    check(parts.find(part => part !== undefined) === found, 'a request is found whole and not in parts')
    if (found !== undefined || classifyFirstBytes(input).kind !== 'opaque') return
    const text = Buffer.from(input).toString('latin1')
    for (const reads of [likeUwsgi, likeJava, likePython])
      check(!reads(text), `a request for another host passes: ${reads.name}`)
  },
})

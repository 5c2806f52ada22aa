/** Requests and answers with a canary: the value leaves only in the named field to the named host, and never comes back. */

import { findHeadEnd } from '../../src/gateway/http/field.ts'
import { readRequestHead } from '../../src/gateway/http/head.ts'
import { judgeRequest } from '../../src/gateway/http/judge.ts'
import { DEFAULT_LIMITS } from '../../src/gateway/limits.ts'
import { AnswerScan } from '../../src/gateway/secrets/answer-scan.ts'
import { Vault } from '../../src/gateway/secrets/vault.ts'
import { exactRule } from '../../src/policy/network/decide-connection.ts'
import { readRequestPath } from '../../src/policy/network/request-path.ts'
import { matchesRequest } from '../../src/policy/network/request-pattern.ts'
import { host, policyOf, port } from '../gateway/world.ts'
import { fuzz } from './fuzz.ts'

const check = (holds: boolean, claim: string): void => {
  if (!holds) throw new Error(claim)
}

const REAL = 'sk-ant-REALREALREALREALREALREALREAL0001'
const FAKE = 'sk-ant-fakefakefakefakefakefakefake9999'
const basic = Buffer.from(`me:${FAKE}`).toString('base64')
const { index } = policyOf({
  secrets: [
    { name: 'KEY', to: ['allowed.test:443/v1/**'], in: ['header:x-api-key', 'header:authorization'] },
  ],
})
const vault = new Vault(index, [{ name: 'KEY', value: REAL, placeholder: FAKE }])
const bound = { methods: [], path: '/v1/**', query: '' }

fuzz('a value is only in the named fields of requests to the named host and path', {
  seeds: [
    `GET /v1/x HTTP/1.1\r\nHost: allowed.test\r\nX-Api-Key: ${FAKE}\r\n\r\n`,
    `GET /v1/x?key=${FAKE} HTTP/1.1\r\nHost: allowed.test\r\nAuthorization: Basic ${basic}\r\n\r\n`,
    `POST /v2/../v1/%2e%2e/x HTTP/1.1\r\nHost: allowed.test\r\nX-Other: ${FAKE}\r\nAuthorization: Bearer ${FAKE}\r\n\r\n`,
  ],
  dictionary: [
    FAKE,
    basic,
    'X-Api-Key: ',
    'Authorization: Basic ',
    'Authorization: Bearer ',
    '/v1/',
    '%2f',
    '..',
    '//',
    '\r\n',
    ';',
  ],
  run: input => {
    const end = findHeadEnd(input, 0, DEFAULT_LIMITS.maxRequestHead)
    if (end.kind !== 'end') return
    const head = readRequestHead(input.subarray(0, end.end), DEFAULT_LIMITS)
    if (head.kind !== 'request') return
    for (const name of ['allowed.test', 'evil.test']) {
      const to = { name: host(name) }
      const endpoint = { to, port: port(443) }
      const judged = judgeRequest({ ...head, host: name }, { kind: 'fixed', endpoint, isSecure: true })
      if (judged.kind !== 'forward') continue
      const path = readRequestPath(judged.path)
      if (!path.ok) continue
      const line = { method: head.method, ...path.value }
      const dial = exactRule(to, port(443))
      const replaced = vault.replace(index, { dial, isSecure: true, line, fields: head.fields })
      if ('reason' in replaced) continue
      const shown = (value: string): string => {
        const [, coded = ''] = /^basic +(\S+)$/i.exec(value) ?? []
        return `${value} ${Buffer.from(coded, 'base64').toString('latin1')}`
      }
      check(!replaced.query.includes(REAL), 'the value is in the query')
      for (const { key, value } of replaced.fields) {
        check(!(key === 'authorization' ? shown(value) : value).includes(FAKE), 'a placeholder was passed on')
        if (!shown(value).includes(REAL)) continue
        check(name === 'allowed.test', 'the value goes to another host')
        check(['x-api-key', 'authorization'].includes(key), `the value is in ${key}`)
        check(matchesRequest(bound, line, 'exact'), 'the value goes to another path')
        check(replaced.used.includes('KEY'), 'the record does not name the secret')
      }
    }
  },
})

const textsOf = (value: string): string[] => [
  value,
  ...[0, 1, 2].map(count =>
    Buffer.from(`${':'.repeat(count)}${value}`)
      .toString('base64')
      .replaceAll('=', '')
      .slice(count),
  ),
]
const FORMS = textsOf(REAL)
/** What the texts of value and placeholder both begin with is not secret. */
const SECRET = FORMS.map((text, i) => {
  const fake = textsOf(FAKE)[i] ?? ''
  return text.slice([...text].findIndex((character, at) => character !== fake[at]))
})

/** The slow way: marks every byte that is in a run of two thirds of a text. */
function inRuns(input: string, text: string): boolean[] {
  const marks = Array<boolean>(input.length).fill(false)
  const least = Math.ceil((text.length * 2) / 3)
  for (let at = 0; at < input.length; at++)
    for (let from = 0; from < text.length; from++) {
      let length = 0
      while (from + length < text.length && input[at + length] === text[from + length]) length++
      if (length >= least) marks.fill(true, at, at + length)
    }
  return marks
}

fuzz('an answer never has the value, however it is cut and encoded, and keeps all other bytes', {
  seeds: [`you sent ${REAL}`, `${REAL}${REAL.slice(0, 9)}${REAL}`, `{"key":"${REAL.slice(0, 5)}${REAL}"}`],
  dictionary: [...FORMS, ...SECRET, ...FORMS.map(text => text.slice(0, -5)), REAL.slice(0, 3), 'sk-'],
  maxBytes: 512,
  run: input => {
    const scan = new AnswerScan([{ value: REAL, placeholder: FAKE }])
    const pieces: Buffer[] = []
    const step = 1 + ((input[0] ?? 0) % 23)
    for (let at = 0; at < input.length; at += step)
      pieces.push(Buffer.from(scan.next(Buffer.from(input.subarray(at, at + step)))))
    pieces.push(Buffer.from(scan.rest()))
    const out = Buffer.concat(pieces).toString('latin1')
    const given = Buffer.from(input).toString('latin1')
    check(out.length === given.length, 'the length changed')
    for (const text of FORMS) check(!out.includes(text), 'the value is in the answer')
    const marks = SECRET.map(text => inRuns(given, text))
    for (let at = 0; at < out.length; at++) {
      const isInRun = marks.some(mark => mark[at])
      check(isInRun || out[at] === given[at], 'other bytes changed')
      // Value and placeholder have no capital and no small letter in common.
      check(
        !isInRun || marks[0]?.[at] !== true || !'REAL'.includes(out[at] ?? ''),
        'a part of the value passed',
      )
    }
  },
})

fuzz('an answer that comes slowly and stays open has at most the first characters of the value', {
  seeds: [`you sent ${REAL} `, `${REAL.slice(0, 20)} ${REAL}${REAL}`],
  dictionary: [REAL, REAL.slice(0, 12), REAL.slice(12), 'sk-'],
  maxBytes: 512,
  run: input => {
    const scan = new AnswerScan([{ value: REAL, placeholder: FAKE }])
    const pieces: Buffer[] = []
    const step = 1 + ((input[0] ?? 0) % 23)
    for (let at = 0; at < input.length; at += step)
      pieces.push(
        Buffer.from(scan.next(Buffer.from(input.subarray(at, at + step)))),
        Buffer.from(scan.late()),
      )
    pieces.push(Buffer.from(scan.rest()))
    const out = Buffer.concat(pieces).toString('latin1')
    const given = Buffer.from(input).toString('latin1')
    check(out.length === given.length, 'the length changed')
    const passed = 'sk-ant-'.length + 11
    for (let at = given.indexOf(REAL); at !== -1; at = given.indexOf(REAL, at + 1))
      check(!/[REAL]/.test(out.slice(at + passed, at + REAL.length)), 'a part of the value passed')
  },
})

import { PenError } from '../../src/base/error.ts'
import { answerReader, encodeAnswer, encodeRequest, requestReader } from '../../src/control/messages.ts'
import type { Port } from '../../src/policy/network/port.ts'
import { fuzz } from './fuzz.ts'

const REQUESTS = [
  encodeRequest({ want: 'ping' }),
  encodeRequest({ want: 'stop' }),
  encodeRequest({ want: 'exec', timeoutMs: null }),
  encodeRequest({ want: 'exec', timeoutMs: 2000 }),
  encodeRequest({ want: 'own' }),
  encodeRequest({ want: 'refused', since: 3 }),
  encodeRequest({ want: 'forward', ports: [{ guest: 3000 as Port, host: 0 }] }),
  encodeRequest({ want: 'judge', access: 'read', path: '/home/you/notes' }),
  encodeRequest({ want: 'ask', target: 'api.example.com:443', waitMs: 1000 }),
]
const ANSWERS = [
  encodeAnswer({ ok: true, value: { timeoutMs: null } }),
  encodeAnswer({ ok: false, error: { code: 'STATE', what: 'w', at: null, hint: 'h' } }),
]
const WORDS = [
  '{"want":',
  '"timeoutMs":',
  '"exec"',
  '"ok":true',
  '"error":',
  '1e400',
  '-1',
  '\0\0\0\x09',
  ' ',
]

/** The first frame has its length. Everything after it is passed on unchanged. */
const ends = (input: Uint8Array): number => 9 + new DataView(input.buffer, input.byteOffset).getUint32(0)

function only(run: () => { readonly rest: Uint8Array } | undefined, input: Uint8Array): void {
  try {
    const found = run()
    if (found !== undefined && found.rest.length !== input.length - ends(input))
      throw new Error('bytes were lost or invented')
  } catch (error) {
    if (!(error instanceof PenError && error.code === 'WIRE')) throw error
  }
}

fuzz('a request is read completely or refused, in pieces as at once', {
  seeds: REQUESTS,
  dictionary: WORDS,
  run: input => {
    only(() => requestReader().push(input), input)
    const reader = requestReader()
    only(() => {
      for (let at = 0; at < input.length; at += 7) {
        const found = reader.push(input.subarray(at, at + 7))
        if (found !== undefined) return { rest: input.subarray(ends(input)) }
      }
      return undefined
    }, input)
  },
})

fuzz('an answer is read completely or refused', {
  seeds: ANSWERS,
  dictionary: WORDS,
  run: input => only(() => answerReader().push(input), input),
})

import { expect, test } from 'bun:test'
import { isWellFormedPunycode } from './punycode.ts'

test('a label that some Unicode name encodes to is well-formed', () => {
  for (const label of [
    'xn--bcher-kva',
    'xn--llowed-4nf',
    'xn--p1ai',
    'xn--wgv71a',
    'xn--maana-pta',
    'xn--ls8h',
  ])
    expect(`${label} ${isWellFormedPunycode(label)}`).toBe(`${label} true`)
})

test('encoded ASCII, broken digits, surrogates and values beyond Unicode are not', () => {
  for (const label of [
    'xn--',
    'xn---',
    'xn--abc-',
    'xn---abc',
    'xn--0000h',
    'xn--99999999',
    'xn--a-zzzzzzzz',
    'bcher-kva',
    'xn--é',
  ])
    expect(`${label} ${isWellFormedPunycode(label)}`).toBe(`${label} false`)
})

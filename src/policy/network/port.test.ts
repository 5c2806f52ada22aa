import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Port, parsePort } from './port.ts'

test('every port from 1 to 65535 is read as itself', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 65535 }), n => {
      expect(parsePort(String(n))).toEqual({ ok: true, value: n as Port })
    }),
  )
  for (const n of [1, 9, 10, 443, 9999, 10000, 65535])
    expect(parsePort(String(n))).toEqual({ ok: true, value: n as Port })
})

describe('a port is refused when number parsers could disagree about it', () => {
  test.each([
    ...['', '0', '00', '00443', '0443', '-1', '-443', '+443', '65536', '65979', '99999', '4294967739'],
    ...['18446744073709552059', '9'.repeat(400), '0x1bb', '0b11', '0o673', '4.43e2', '443.0', '443.', '.443'],
    ...[
      ' 443',
      '443 ',
      '443\t',
      '443\n',
      '\n443',
      '443\0',
      '443abc',
      '443%00',
      '443#',
      '443/',
      '22:443',
      '443:22',
    ],
    ...[
      '443,80',
      '80-90',
      '*',
      'NaN',
      'Infinity',
      'https',
      '1_000',
      '٤٤٣',
      '４４３',
      '4\u200b43',
      '443\u00a0',
    ],
  ])('%j', text => {
    const parsed = parsePort(text)
    expect(parsed.ok).toBe(false)
    if (!parsed.ok) expect(parsed.why).toMatch(/^[ -~]+$/)
  })
})

test('several ports in one entry are refused with the advice to write several entries', () => {
  for (const text of ['443,80', '80-90', '*'])
    expect(parsePort(text)).toMatchObject({ ok: false, fix: 'write one entry for each port' })
})

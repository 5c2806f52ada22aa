import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { placeholderFor as derive } from './placeholder.ts'

const random = (): number => crypto.getRandomValues(new Uint8Array(1))[0] ?? 0
const placeholderFor = (value: string) => derive(value, random)

describe('a placeholder', () => {
  test.each([
    ['sk-ant-api03-AbCd1234efGH5678', /^sk-ant-api03-[A-Z][a-z][A-Z][a-z]\d{4}[a-z]{2}[A-Z]{2}\d{4}$/],
    ['ghp_0123456789abcdefABCDEF', /^ghp_\d{10}[a-z]{6}[A-Z]{6}$/],
    ['AKIAIOSFODNN7EXAMPLE', /^AKIA[A-Z]{8}\d[A-Z]{7}$/],
    ['a1b2-c3d4_e5f6', /^[a-z]\d[a-z]\d-[a-z]\d[a-z]\d_[a-z]\d[a-z]\d$/],
    ['eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJlMTIzNDU2', /^eyJhbGciOiJI\.eyJzdWIiOiIx\.[\w-]{20}$/],
  ])('of %s has its length and shape', (value, shape) => {
    const placeholder = placeholderFor(value) ?? ''
    expect(placeholder).toMatch(shape)
    expect(placeholder).toHaveLength(value.length)
    expect(placeholder).not.toBe(value)
    expect(placeholderFor(value)).not.toBe(placeholder)
  })

  test.each(['short', '--------------------', 'sk-abc1234', ''])('%j has too little to replace', value => {
    expect(placeholderFor(value)).toBeUndefined()
  })

  test('shares no run of 16 characters with the value, beyond the known beginning', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9]{32}$/), value => {
        const placeholder = placeholderFor(value) ?? ''
        for (let at = 0; at + 16 <= value.length; at++)
          expect(placeholder.includes(value.slice(at, at + 16))).toBe(false)
      }),
    )
  })
})

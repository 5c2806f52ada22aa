import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { CapturedOutput } from './captured-output.ts'

const capture = (most: number, ...pieces: string[]): CapturedOutput => {
  const output = new CapturedOutput(most)
  for (const piece of pieces) output.push(Buffer.from(piece))
  return output
}

/** Memory in use after garbage collection. */
function retained(): number {
  Bun.gc(true)
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

describe('output', () => {
  test('within its bound is complete, wherever the chunks end', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 20 }), { maxLength: 10 }), pieces => {
        const whole = pieces.join('')
        const output = capture(Buffer.byteLength(whole), ...pieces)
        expect(output.text()).toBe(Buffer.from(whole).toString())
        expect(output.truncated).toBe(false)
      }),
    )
  })

  test('above its bound keeps the beginning and the end, and says how much is missing', () => {
    const output = capture(10, 'abcdefgh', 'ijklmnop', 'qrstuvwxyz')
    expect(output.truncated).toBe(true)
    expect(output.text()).toBe('abcde\n… 16 bytes left out …\nvwxyz')
  })

  test('of any length stays within bounded memory', () => {
    const output = new CapturedOutput(1000)
    const piece = Buffer.alloc(65_536, 'x')
    for (let i = 0; i < 1000; i++) output.push(piece)
    expect(output.text()).toContain('65535000 bytes left out')
  })

  test('P13 byte by byte takes no more memory than in one chunk', () => {
    const before = retained()
    const output = new CapturedOutput(4 * 2 ** 20)
    const piece = Buffer.from('x')
    for (let i = 0; i < 4 * 2 ** 20; i++) output.push(piece)
    expect(retained() - before).toBeLessThan(40 * 2 ** 20)
    expect(output.text().length).toBe(4 * 2 ** 20)
  })
})

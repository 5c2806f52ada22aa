import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import fc from 'fast-check'
import { plain } from './colour.ts'
import { unifiedDifference } from './unified-difference.ts'

test('git apply makes the new text of the old one', () => {
  const dir = mkdtempSync(`${tmpdir()}/pen-unified-`)
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', '\t\\d', ''), { minLength: 1, maxLength: 30 })
  const text = fc.tuple(lines, fc.boolean()).map(([all, ends]) => all.join('\n') + (ends ? '\n' : ''))
  try {
    fc.assert(
      fc.property(text, text, (before, after) => {
        fc.pre(before !== after && before !== '' && after !== '')
        writeFileSync(`${dir}/f`, before)
        const patch = ['--- a/f', '+++ b/f', ...unifiedDifference(before, after, plain), ''].join('\n')
        const { exitCode } = Bun.spawnSync(['git', 'apply', '--whitespace=nowarn', '-'], {
          cwd: dir,
          stdin: Buffer.from(patch),
        })
        expect(exitCode).toBe(0)
        expect(readFileSync(`${dir}/f`, 'utf8')).toBe(after)
      }),
      { numRuns: 100 },
    )
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})

test('hostile characters are spelled out; tabs and backslashes stay', () => {
  expect(unifiedDifference('a\n', 'a\n\u001b[2K\tb\\n\u202e\r\n', plain)).toEqual([
    '@@ -1,1 +1,2 @@',
    ' a',
    '+<U+001B>[2K\tb\\n<U+202E><U+000D>',
  ])
})

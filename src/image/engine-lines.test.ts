import { expect, test } from 'bun:test'
import { eachLine, shownLine } from './engine-lines.ts'

async function shown(...chunks: string[]): Promise<string[]> {
  const lines: string[] = []
  const stream = (async function* () {
    for (const chunk of chunks) yield new TextEncoder().encode(chunk)
  })()
  await eachLine(stream, line => lines.push(line))
  return lines
}

test('colours and cursor moves of a build are left out, and its text stays', () => {
  expect(shownLine('\x1b[1;32mPASS\x1b[0m \x1b[2K\x1b[1Gdone')).toBe('PASS done')
  expect(shownLine('\x1b]0;npm install\x07added \x1b]8;;https://x.test\x1b\\link\x1b]8;;\x1b\\')).toBe(
    'added link',
  )
})

test('other control characters are escaped, and cannot be assembled from parts', () => {
  expect(shownLine('\x1b]52;c;aGk=\x07')).toBe('\\u001b]52;c;aGk=\\u0007')
  expect(shownLine('\x1bP+q\x1b\\')).toContain('\\u001b')
  expect(shownLine('\x1b\x1b[0m]52;c;aGk=\x07')).not.toContain('\x1b')
  expect(shownLine('a\u202eb\x08')).toBe('a\\u202eb\\u0008')
})

test('a line is whole however it is cut, and CR LF ends one', async () => {
  expect(await shown('one\r', '\ntw', 'o\nthree')).toEqual(['one', 'two', 'three'])
  expect(await shown('a'.repeat(5000))).toHaveLength(1)
})

test('a progress bar that is drawn a hundred times is a line or two, with its end', async () => {
  const bar = Array.from({ length: 100 }, (_, i) => `${i}%\r`).join('')
  expect(await shown(bar, '100%\n')).toEqual(['0%', '100%'])
})

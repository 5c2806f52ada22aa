import { describe, expect, test } from 'bun:test'
import { blocksOf, patternOf } from './page.ts'

const page = [
  'Text.',
  '',
  '```sh',
  'pen run -- true   # works',
  '# only a comment',
  'pen run -- false  # fails: exit 1',
  'pen logs --follow # until Ctrl-C',
  '```',
  '<!-- not run: it opens an editor -->',
  '```sh',
  'pen config edit',
  '```',
  '<!-- run: after the block above; with a container engine -->',
  '```console',
  '$ pen start',
  'started …',
  '$ pen stop',
  '```',
  '```json',
  '{ "a": 1 }',
  '```',
].join('\n')

describe('the commands of a page', () => {
  const [sh, edit, engine, json] = blocksOf(page)

  test('stand in blocks, with the exit code that their comment names', () => {
    expect(sh?.commands.map(({ line, exit, untilInterrupted }) => [line, exit, untilInterrupted])).toEqual([
      [4, 0, false],
      [6, 1, false],
      [7, 0, true],
    ])
    expect(json?.commands).toEqual([])
  })

  test('may continue on the next line', () => {
    const [block] = blocksOf('```sh\npen run --offline \\\n  -- true\npen logs\n```')
    expect(block?.commands.map(({ line, text }) => [line, text])).toEqual([
      [2, 'pen run --offline -- true'],
      [4, 'pen logs'],
    ])
  })

  test('say how to run them, or why they are not run', () => {
    expect([sh?.notRun, edit?.notRun, engine?.notRun]).toEqual([undefined, 'it opens an editor', undefined])
    expect([...(sh?.ways ?? []), ...(engine?.ways ?? [])]).toEqual([
      'after the block above',
      'with a container engine',
    ])
    expect(() => blocksOf('<!-- run: with luck -->\n```sh\n```')).toThrow('with luck')
  })

  test('may show what they print, with … for the rest', () => {
    expect(engine?.commands.map(({ text, prints }) => [text, prints])).toEqual([
      ['pen start', ['started …']],
      ['pen stop', []],
    ])
    expect(patternOf(['a.b … c', '…', 'end']).test('a.b  x c\n1\n2\nend\n')).toBe(true)
    expect(patternOf(['a.b']).test('aXb\n')).toBe(false)
    expect(patternOf(['a']).test('a\nb\n')).toBe(false)
  })

  test('a block that does not end is a mistake', () => {
    expect(() => blocksOf('```sh\npen')).toThrow('line 1')
  })
})

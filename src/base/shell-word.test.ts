import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { shellWord } from './shell-word.ts'

test('P15 a hostile file name is one word of the command that a person copies, or is left out', () => {
  for (const text of [
    '/a/b.txt',
    '/a b',
    "/it's",
    '/x; touch y',
    '/$(id)`id`',
    '/a"b\\',
    '/-x',
    '/*?[a]~!#&|<>',
  ])
    expect(spawnSync('sh', ['-c', `printf '%s|' ${shellWord(text)}`]).stdout.toString()).toBe(`${text}|`)
  for (const text of ['', '/a\nid', '/a\x1b[2J', '/a\u202eb', '/ä', `/${'a'.repeat(600)}`])
    expect(shellWord(text)).toBeUndefined()
})

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { locate } from '../config/locate.ts'
import { parseGlob } from '../policy/files/glob.ts'
import type { Policy } from '../policy/policy.ts'
import { deniedWays } from './denied-ways.ts'

let ws = ''
beforeEach(() => {
  ws = realpathSync(mkdtempSync(join(tmpdir(), 'pen-ways-')))
})
afterEach(() => rmSync(ws, { recursive: true, force: true }))

/** Only the parts that are asked for. */
function ways(rules: readonly string[], matches: readonly string[] = []) {
  const deny = rules.map(text => {
    if (text.startsWith('/')) return { rule: { kind: 'path', path: locate(text).real, alias: text } }
    if (!/[*?]/.test(text)) return { rule: { kind: 'path', path: `${ws}/${text}` } }
    const glob = parseGlob(text)
    if (!glob.ok) throw new Error(glob.why)
    return { rule: { kind: 'glob', glob: glob.value } }
  })
  const policy = { workspace: ws, files: { deny, write: [{ rule: { path: ws } }] } } as unknown as Policy
  const { pins, watch } = deniedWays(
    policy,
    matches.map(path => `${ws}/${path}`),
  )
  const short = (path: string): string => path.slice(ws.length + 1)
  return {
    pins: pins.map(short),
    watch: watch.map(({ path, rule }) => `${short(path)} ${rule.kind === 'link' ? rule.text : rule.kind}`),
  }
}

test('directories on the way are pinned, and a link may replace none of them; the top needs neither', () => {
  mkdirSync(`${ws}/a/b`, { recursive: true })
  expect(ways(['.env', '.env*'])).toEqual({ pins: [], watch: [] })
  expect(ways(['a/b/c/key', 'a/*.pem'])).toEqual({
    pins: ['a', 'a/b'],
    watch: ['a/b/c no-link', 'a no-link'],
  })
})

test('a glob counts up to its first pattern, and one for any depth does not count', () => {
  mkdirSync(`${ws}/a/b`, { recursive: true })
  expect(ways(['a/*/c/key', '**/a/key'], ['a/b/c/key'])).toEqual({ pins: ['a'], watch: ['a no-link'] })
})

test('a link at a denied name stays, and the directories behind it are kept too', () => {
  mkdirSync(`${ws}/real/deep`, { recursive: true })
  symlinkSync('../real', `${ws}/real/back`)
  symlinkSync('real/back/deep/key', `${ws}/conf`)
  writeFileSync(`${ws}/real/deep/key`, '')
  expect(ways(['conf'])).toEqual({
    pins: ['real', 'real/deep'],
    watch: ['conf real/back/deep/key', 'real/back ../real', 'real/deep no-link'],
  })
})

test('a rule whose way leads through a link is refused, and names the path behind it', () => {
  mkdirSync(`${ws}/real/sub`, { recursive: true })
  symlinkSync('real', `${ws}/conf`)
  for (const [rule, behind] of [
    ['conf/key', 'real/key'],
    ['conf/*.pem', 'real/*.pem'],
    ['conf/sub/key', 'real/sub/key'],
  ] as const)
    expect(() => ways([rule]), rule).toThrow(
      expect.objectContaining({ hint: `deny what is behind it: ${behind}` }),
    )
  expect(ways(['conf', '*/key', 'real/key']).watch).toEqual(['conf real', 'real no-link'])
})

test('so is one with an absolute path; a link above the workspace, such as /home, is an ordinary way', () => {
  mkdirSync(`${ws}/real/sub`, { recursive: true })
  symlinkSync('real', `${ws}/conf`)
  symlinkSync(ws, `${ws}.link`)
  try {
    for (const top of [ws, `${ws}.link`]) {
      expect(() => ways([`${top}/conf/key`])).toThrow('the way to a denied path leads through this link')
      expect(ways([`${top}/real/sub/key`])).toEqual({
        pins: ['real', 'real/sub'],
        watch: ['real/sub no-link'],
      })
      // The denied name itself may be a link, as with a relative rule.
      expect(ways([`${top}/conf`]).watch).toEqual(['conf real'])
    }
  } finally {
    rmSync(`${ws}.link`)
  }
})

test('a link that leads through a directory and back, or through /proc, is refused; one that leads up is not', () => {
  mkdirSync(`${ws}/a/b`, { recursive: true })
  const link = (text: string) => {
    rmSync(`${ws}/a/conf`, { force: true })
    symlinkSync(text, `${ws}/a/conf`)
    return () => ways(['a/conf'])
  }
  for (const text of [
    'b/..',
    'b/../b',
    './b//.././b',
    '../a/../b',
    'b/./../x',
    '...//..',
    `${ws}/a/../a`,
    '.b/..',
  ])
    expect(link(text), text).toThrow('leads through a directory and back')
  symlinkSync('/dev', `${ws}/dev`)
  for (const text of [
    '/proc/self/cwd/x',
    '../../../../../../proc',
    '/./proc//thread-self',
    '/dev/fd/9',
    '../dev/stdin',
  ])
    expect(link(text), text).toThrow('leads through /proc')
  for (const text of ['../a/b', './../a', 'b', '../..', 'b..', '..b/c', `${ws}/a/b`, '/dev/null'])
    expect([text, link(text)().watch[0]]).toEqual([text, `a/conf ${text}`])
})

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseGlob } from '../policy/files/glob.ts'
import { type Covered, expandGlob } from './expand.ts'
import { ListingCache } from './listing-cache.ts'

let base = ''
let ws = ''
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-expand-')))
  ws = `${base}/ws`
  const files = [
    '.env',
    '.env.local',
    'src/.env',
    'env',
    'secrets/key',
    'conf/a/key',
    'conf/b/key',
    'conf/c/other',
    'real/hidden',
  ]
  for (const path of [...files, '../outside/key', 'plain']) file(path)
  symlinkSync('real/hidden', `${ws}/.envlink`)
  symlinkSync('../outside', `${ws}/away`)
  symlinkSync('.envloop', `${ws}/.envloop`)
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

function file(path: string): void {
  mkdirSync(dirname(join(ws, path)), { recursive: true })
  writeFileSync(join(ws, path), 'x')
}

function expand(text: string, cache?: ListingCache): readonly Covered[] {
  const glob = parseGlob(text)
  if (!glob.ok) throw new Error(glob.why)
  return expandGlob(glob.value, ws, cache)
}

const shown = (text: string): readonly string[] =>
  expand(text)
    .map(c => `${c.path.slice(ws.length + 1)} ${c.type}`)
    .sort()

describe('a glob covers', () => {
  test('names at the root alone, and what links among them lead to', () => {
    expect(shown('.env*')).toEqual([
      '.env file',
      '.env.local file',
      '.envlink link',
      '.envloop link',
      'real/hidden file',
    ])
  })

  test.each([
    ['secrets/', ['secrets dir']],
    ['secrets', ['secrets dir']],
    ['plain/', []],
    ['plain', ['plain file']],
    ['absent', []],
    ['conf/*/key', ['conf/a/key file', 'conf/b/key file']],
    ['conf/?/o*', ['conf/c/other file']],
    ['away/*', []],
    ['away/key', []],
    ['plain/x', []],
  ])('%s: %j', (text, wanted) => expect(shown(text)).toEqual(wanted))
})

describe('a very large directory', () => {
  test('hides no match behind its size, at any level of the glob', () => {
    for (let i = 0; i < 2100; i++) file(`many/.env.${i}`)
    for (let i = 0; i < 2100; i++) mkdirSync(`${ws}/many/d${i}`)
    file('many/d2099/key')
    expect(expand('many/.env*')).toHaveLength(2100)
    expect(shown('many/*/key')).toEqual(['many/d2099/key file'])
  })

  test('is listed once, and again after a change', async () => {
    for (let i = 0; i < 1200; i++) file(`large/.env-${'x'.repeat(100)}-${i}`)
    const saved: string[] = []
    const store = `${base}/cache.json`
    const save = (path: string, text: string): void => {
      saved.push(text)
      writeFileSync(path, text)
    }
    const later = (): number => Date.now() + 5000
    const ask = (now = later): number =>
      expand('large/.env*', new ListingCache({ file: store, save, now })).length
    expect(ask(Date.now)).toBe(1200)
    expect(saved).toHaveLength(0)
    expect(ask()).toBe(1200)
    expect(saved).toHaveLength(1)
    expect(ask()).toBe(1200)
    expect(saved).toHaveLength(1)
    await Bun.sleep(20)
    file('large/.env-new')
    expect(ask()).toBe(1201)
    expect(saved).toHaveLength(2)
    writeFileSync(store, '{"half')
    expect(ask()).toBe(1201)
    expect(readFileSync(store, 'utf8')).toStartWith('{"')
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SearchOrder } from '../protocol/file-order.ts'
import { searchTree } from './search-tree.ts'

let root = ''
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'pen-search-'))
  for (const dir of ['src/deep', '.git', 'node_modules/x']) mkdirSync(join(root, dir), { recursive: true })
  writeFileSync(join(root, 'src/a.ts'), 'one\nTwo\nthree two\n')
  writeFileSync(join(root, 'src/deep/b.ts'), 'two')
  writeFileSync(join(root, 'src/deep/c.md'), 'two')
  writeFileSync(join(root, '.git/config'), 'two')
  writeFileSync(join(root, 'node_modules/x/d.ts'), 'two')
  writeFileSync(join(root, 'binary'), 'two\0two')
  symlinkSync('..', join(root, 'src/circle'))
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

function search(order: Partial<SearchOrder>): string[] {
  const whole = {
    op: 'search',
    path: root,
    pattern: '',
    ignoreCase: false,
    name: '',
    most: 100,
    ...order,
  } as const
  return [...searchTree(whole)].map(found =>
    'more' in found
      ? 'more'
      : 'tooLong' in found
        ? `too long: ${found.tooLong.slice(root.length + 1)}`
        : `${found.path.slice(root.length + 1)}:${found.line}:${found.text}`,
  )
}

describe('a search', () => {
  test('names files that are too long to search, and marks where a long line is cut', () => {
    const [long, wide] = [join(root, 'src/long.log'), join(root, 'src/wide.log')]
    writeFileSync(long, 'needle')
    truncateSync(long, 9 * 2 ** 20)
    writeFileSync(wide, `needle${'x'.repeat(500)}`)
    const cut = `src/wide.log:1:needle${'x'.repeat(394)}…`
    expect(search({ pattern: 'needle' })).toEqual(['too long: src/long.log', cut])
    expect(search({ name: '*.log' })).toEqual(['src/long.log:0:', 'src/wide.log:0:'])
    for (const file of [long, wide]) rmSync(file)
  })

  test('finds lines in files, but not in binaries and skipped directories', () => {
    expect(search({ pattern: 'two' })).toEqual([
      'src/a.ts:3:three two',
      'src/deep/b.ts:1:two',
      'src/deep/c.md:1:two',
    ])
    expect(search({ pattern: '^two', ignoreCase: true, name: '*.ts' })).toEqual([
      'src/a.ts:2:Two',
      'src/deep/b.ts:1:two',
    ])
  })

  test('searches a skipped directory that is named', () => {
    expect(search({ pattern: 'two', path: join(root, '.git') })).toEqual(['.git/config:1:two'])
  })

  test.each([
    ['*.ts', ['src/a.ts:0:', 'src/deep/b.ts:0:']],
    ['src/*.ts', ['src/a.ts:0:']],
    ['src/**/*.ts', ['src/a.ts:0:', 'src/deep/b.ts:0:']],
    ['deep', ['src/deep/b.ts:0:', 'src/deep/c.md:0:']],
    ['?.md', ['src/deep/c.md:0:']],
    ['a+ts*', []],
  ])('finds files by name: %s', (name, found) => {
    expect(search({ name })).toEqual(found)
  })

  test('says when there is more', () => {
    expect(search({ pattern: 'two', most: 1 })).toEqual(['src/a.ts:3:three two', 'more'])
  })

  test('refuses an invalid expression', () => {
    expect(() => search({ pattern: '(' })).toThrow('not a regular expression')
  })
})

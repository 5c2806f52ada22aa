import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { foldsNames } from './case-folding.ts'

const base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-fold-')))
afterAll(() => rmSync(base, { recursive: true, force: true }))

const directory = (...parts: string[]): string => {
  const path = join(base, ...parts)
  mkdirSync(path, { recursive: true })
  return path
}

describe('names are not folded', () => {
  test('on an ordinary file system, whatever the project is called', () => {
    for (const name of ['project', 'Project', '123', 'ÄÖ', '-'])
      expect(foldsNames(directory('a', name))).toBe(false)
  })
  test('where both spellings are there', () => {
    directory('b', 'PROJECT')
    expect(foldsNames(directory('b', 'project'))).toBe(false)
    const digits = directory('c', '1')
    writeFileSync(join(digits, 'x'), '')
    writeFileSync(join(digits, 'X'), '')
    expect(foldsNames(digits)).toBe(false)
  })
  test('at the root of a file system that has names', () => {
    expect(foldsNames('/')).toBe(false)
    expect(foldsNames('/proc')).toBe(false)
  })
  test('in an empty directory, where pen cannot tell', () => {
    expect(foldsNames(join(base, 'absent', 'project'))).toBe(false)
  })
})

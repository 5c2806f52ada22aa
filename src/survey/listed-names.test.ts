import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listNames } from './listed-names.ts'

const dir = mkdtempSync(join(tmpdir(), 'pen-names-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

test('a name in any case may be there, and every other is proven absent', () => {
  writeFileSync(join(dir, '.VSCode'), '')
  expect(listNames(dir)?.mayHave('.vscode')).toBe(true)
  expect(listNames(dir)?.mayHave('.idea')).toBe(false)
})

test('a name that a file system might fold into another proves nothing absent', () => {
  writeFileSync(join(dir, '.vſcode'), '')
  expect(listNames(dir)).toBeUndefined()
})

test('a directory that cannot be listed proves nothing absent', () => {
  expect(listNames(join(dir, 'absent'))).toBeUndefined()
})

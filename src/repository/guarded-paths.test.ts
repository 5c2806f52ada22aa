import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { guardedPaths } from './guarded-paths.ts'

/** `printf evil | git hash-object --stdin` */
const BLOB = 'e3d35f18560c0f2a1125f8c8ba9a8210c6321ccf'

test("a file at a protected place is the user's own only when a mount held it", () => {
  const top = mkdtempSync(`${tmpdir()}/guarded-`)
  try {
    writeFileSync(`${top}/.envrc`, 'evil')
    const place = `${top}/.envrc`
    expect(guardedPaths(top, [place], [])('.envrc', BLOB)).toBe(true)
    expect(guardedPaths(top, [place], [place])('.envrc', BLOB)).toBe(false)
    expect(guardedPaths(top, [place], [place])('src/a', BLOB)).toBe(false)
  } finally {
    rmSync(top, { recursive: true })
  }
})

test('a link above a protected place is guarded, and a file or a directory there is not', () => {
  const isGuarded = guardedPaths('/top', ['/top/.claude/settings.json'], [])
  expect(isGuarded('.claude', BLOB, true)).toBe(true)
  expect(isGuarded('.claude', BLOB)).toBe(false)
  expect(isGuarded('.claude/notes', BLOB, true)).toBe(false)
  expect(isGuarded('claude', BLOB, true)).toBe(false)
  expect(isGuarded('.CLAUDE', BLOB, true)).toBe(true)
  expect(isGuarded('.claude/Settings.json', BLOB)).toBe(true)
})

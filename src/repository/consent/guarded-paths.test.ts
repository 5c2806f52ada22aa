import { expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { guardedPaths } from './guarded-paths.ts'

/** `printf evil | git hash-object --stdin` */
const BLOB = 'e3d35f18560c0f2a1125f8c8ba9a8210c6321ccf'

const within = (protectedPaths: string[], heldPaths: string[] = []) => ({
  protectedPaths,
  heldPaths,
  mayWrite: (path: string) => !path.startsWith('/top/vendor/') && !path.endsWith('/.env'),
})

test("a file at a protected place is the user's own only when a mount held it", () => {
  const top = mkdtempSync(`${tmpdir()}/guarded-`)
  try {
    writeFileSync(`${top}/.envrc`, 'evil')
    const place = `${top}/.envrc`
    expect(guardedPaths(top, within([place])).isOwn('.envrc', `100644 ${BLOB}`)).toBe(false)
    const { isOwn } = guardedPaths(top, within([place], [place]))
    expect(isOwn('.envrc', `100644 ${BLOB}`)).toBe(true)
    expect(isOwn('.envrc', '')).toBe(false)
    // The same content as a link, or as a program that the user has not made one.
    expect(isOwn('.envrc', `120000 ${BLOB}`)).toBe(false)
    expect(isOwn('.envrc', `100755 ${BLOB}`)).toBe(false)
    chmodSync(place, 0o755)
    expect(isOwn('.envrc', `100755 ${BLOB}`)).toBe(true)
  } finally {
    rmSync(top, { recursive: true })
  }
})

test('a link above a protected place is guarded, and a file or a directory there is not', () => {
  const { isPlace } = guardedPaths('/top', within(['/top/.claude/settings.json']))
  const [file, link] = [`100644 ${BLOB}`, `120000 ${BLOB}`]
  expect(isPlace('.claude', '', link)).toBe(true)
  expect(isPlace('.claude', link, '')).toBe(true)
  expect(isPlace('.claude', '', file)).toBe(false)
  expect(isPlace('.claude/notes', '', link)).toBe(false)
  expect(isPlace('claude', '', link)).toBe(false)
  expect(isPlace('.CLAUDE', '', link)).toBe(true)
  expect(isPlace('.claude/Settings.json', '', file)).toBe(true)
  expect(isPlace('.claude/settings.json', file, '')).toBe(true)
  expect(isPlace('.claude/settings.json/in', '', file)).toBe(true)
  expect(isPlace('src/a', '', file)).toBe(false)
})

test('a name that a file system may take for a protected one is guarded, and other letters are not', () => {
  const { isPlace } = guardedPaths('/top', within(['/top/.vscode', '/top/.husky', '/top/größe']))
  const names = [
    '.v\u017fcode/x',
    '.vsc\u200code/x',
    '.hu\u017fky',
    '.gitmodule\u017f',
    'gro\u0308\u00dfe',
    'GRÖSSE',
  ]
  expect(names.filter(name => !isPlace(name, '', `100644 ${BLOB}`))).toEqual([])
  const others = ['.vścode/x', 'größen', '日本/x']
  expect(others.filter(name => isPlace(name, '', `100644 ${BLOB}`))).toEqual([])
})

test('what the sandbox may not write is guarded', () => {
  const { isPlace } = guardedPaths('/top', within([]))
  const paths = ['vendor/lib.js', '.env', 'src/x', 'env']
  expect(paths.filter(path => isPlace(path, '', `100644 ${BLOB}`))).toEqual(['vendor/lib.js', '.env'])
})

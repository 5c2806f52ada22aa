import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { hasOnlyCopies } from './forget.ts'

test.each([
  [false, []],
  [false, ['git/run.lock', 'git/empty/x', 'git/run/dir/HEAD']],
  [false, ['git/run/synced', 'git/run/seen:clean']],
  [true, ['git/run/synced', 'git/run/seen:kept']],
  // A sync failed.
  [true, ['git/run/synced']],
  [true, ['git/run/adopted']],
  [true, ['git/run.damaged-12/git/HEAD']],
  [true, ['quarantine/run/0/file']],
])('what only the sandbox has: %j for %j', (has, files) => {
  const state = mkdtempSync(join(tmpdir(), 'pen-forget-'))
  try {
    for (const file of files) {
      const [path = '', content = ''] = file.split(':')
      mkdirSync(dirname(`${state}/${path}`), { recursive: true })
      writeFileSync(`${state}/${path}`, `${content}\n`)
    }
    expect(hasOnlyCopies(state)).toBe(has)
  } finally {
    rmSync(state, { recursive: true })
  }
})

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { forgetSandbox, hasOnlyCopies } from './forget.ts'

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

test('a sandbox is not removed while an accept is at work, or was killed at its work', async () => {
  const state = mkdtempSync(join(tmpdir(), 'pen-forget-'))
  try {
    mkdirSync(`${state}/review`)
    writeFileSync(`${state}/review/journal`, '')
    const forget = () => forgetSandbox(state, { keep: [], discard: true })
    await expect(forget()).rejects.toThrow('or was killed; nothing was removed')
    rmSync(`${state}/review/journal`)
    await forget()
    expect(existsSync(state)).toBe(false)
  } finally {
    rmSync(state, { recursive: true, force: true })
  }
})

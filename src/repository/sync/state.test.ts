import { expect, test } from 'bun:test'
import type { GitRunner } from '../git/git-runner.ts'
import { readHostState, readState } from './state.ts'

/** A repository with so many branches. */
const git =
  (count: number): GitRunner =>
  async () => {
    const line = (i: number): string => `ref ${'1'.repeat(40)} refs/heads/branch-${i}\n`
    return {
      code: 0,
      stdout: Buffer.from(Array.from({ length: count }, (_, i) => line(i)).join('')),
      stderr: '',
    }
  }

test('a sandbox with too many refs is refused before pen reads them; those of the host are read', async () => {
  expect((await readState(git(100_000))).refs.size).toBe(100_000)
  await expect(readState(git(600_000))).rejects.toThrow('too many refs')
  expect((await readHostState(git(600_000))).refs.size).toBe(600_000)
})

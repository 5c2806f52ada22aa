import { expect, test } from 'bun:test'
import { firstBranch } from './adopt.ts'

test.each([
  ['ref: refs/heads/trunk\n', 'trunk'],
  ['ref: refs/heads/a/b-1.x\n', 'a/b-1.x'],
  ['ref: refs/heads/HEAD\n', 'main'],
  ['ref: refs/heads/deadbeef\n', 'main'],
  ['ref: refs/heads/refs/heads/x\n', 'main'],
  ['ref: refs/heads/-x\n', 'main'],
  ['ref: refs/heads/a\n\n', 'main'],
  ['', 'main'],
])('the first branch of a repository from a sandbox: %j', (head, branch) => {
  expect(firstBranch(head)).toBe(branch)
})

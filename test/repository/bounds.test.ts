import { expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import type { HostPath } from '../../src/policy/files/path.ts'
import { Budget } from '../../src/repository/budget.ts'
import { GitBox } from '../../src/repository/git-box.ts'
import { readState } from '../../src/repository/state.ts'
import { budgetFile } from '../../src/repository/sync-all.ts'
import { started } from './evil-objects.ts'

test('a run brings a limited number of new refs; the rest stays inside until pen git import', async () => {
  using two = started()
  writeFileSync(budgetFile(two.entry), JSON.stringify({ refs: 4993, objects: 0, bytes: 0 }))
  for (let i = 0; i < 12; i++) two.inside('branch', `b${i}`)
  const count = (): number => two.host.git('for-each-ref', 'refs/heads').split('\n').length
  const { isComplete, lines } = await two.sync()
  expect([isComplete, count()]).toEqual([false, 1 + 7])
  expect(lines.join()).toContain(
    '5 new refs stay in the sandbox for now; to get more of them: pen git import',
  )
  const id = two.commitInside('two')
  await two.sync()
  expect([two.host.git('rev-parse', 'main'), count()]).toEqual([id, 1 + 7])
  // As the command does.
  Budget.forget(budgetFile(two.entry))
  await two.sync()
  expect(count()).toBe(1 + 12)
})

test('refs that are put aside count as well, so a sandbox cannot fill the host with them', async () => {
  using two = started()
  writeFileSync(budgetFile(two.entry), JSON.stringify({ refs: 4999, objects: 0, bytes: 0 }))
  two.host.git('commit', '-q', '--allow-empty', '-m', 'host')
  for (let i = 0; i < 3; i++) {
    two.inside('commit', '-q', '--allow-empty', '--amend', '-m', `inside ${i}`)
    await two.sync()
  }
  expect(two.host.git('for-each-ref', '--format=%(refname)', 'refs/pen').split('\n')).toHaveLength(1)
})

test('a run brings a limited number of bytes; over it, nothing comes and nothing is lost', async () => {
  using two = started()
  const before = two.listing()
  writeFileSync(budgetFile(two.entry), JSON.stringify({ refs: 0, objects: 0, bytes: 4 * 1024 ** 3 - 10 }))
  const id = two.commitInside('two')
  const { isComplete, lines } = await two.sync()
  expect(isComplete).toBe(false)
  expect(lines.join()).toContain('one run may bring 4GiB, and this would be more')
  expect(lines.join()).toContain('pen git import tries again')
  expect(two.listing()).toEqual(before)
  Budget.forget(budgetFile(two.entry))
  await two.sync()
  expect(two.host.git('rev-parse', 'main')).toBe(id)
})

test('a named pipe in place of HEAD cannot hold a sync for longer than its time', async () => {
  using two = started()
  rmSync(`${two.own}/HEAD`)
  Bun.spawnSync(['mkfifo', `${two.own}/HEAD`])
  const { world, git } = two.options
  const box = new GitBox(world, git, two.own as HostPath, Date.now() + 1500)
  const began = performance.now()
  const read = (): Promise<string> =>
    readState(box.run).then(
      () => 'read',
      (error: Error) => error.message,
    )
  expect([await read(), await read()].join()).toContain('too long')
  expect(performance.now() - began).toBeLessThan(10_000)
})

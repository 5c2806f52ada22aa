/** What `pen git status` lists. */
import { expect, test } from 'bun:test'
import type { HostPath } from '../../src/policy/files/path.ts'
import { asideIn, pendingIn } from '../../src/repository/pending.ts'
import { SANDBOX, TwoRepositories } from './two-repositories.ts'

function started(): TwoRepositories {
  const two = new TwoRepositories()
  two.host.commit('one')
  return two.start()
}

const pending = async (two: TwoRepositories): Promise<readonly string[]> =>
  (await pendingIn({ ...two.options, entry: two.entry, dir: two.own as HostPath })).map(
    ({ name, what }) => `${name}: ${what}`,
  )

const aside = async (two: TwoRepositories): Promise<readonly string[]> =>
  (await asideIn(two.options, `${two.entry}/empty`)).map(({ name }) => name)

test('a file that is staged in a worktree of the sandbox is listed, and a worktree without one is not', async () => {
  using two = started()
  const made = `${two.host.base}/made`
  two.inside('worktree', 'add', '-q', made, '-b', 'made')
  await two.sync()
  expect(await pending(two)).toEqual([])
  two.host.write('../made/new', 'x')
  two.insideAt('worktrees/made', made, 'add', 'new')
  expect(await pending(two)).toEqual(['staged files: not on the host yet'])
})

test('a stash is listed until it is on the host, with its text; one that is dropped inside is named', async () => {
  using two = started()
  for (const text of ['first work', 'second work']) {
    two.host.write('one', text)
    two.inside('stash', 'push', '-q', '-m', text)
  }
  expect(await pending(two)).toEqual(['stash: not on the host yet', 'stash: not on the host yet'])
  expect((await two.sync()).lines).toEqual([])
  expect(await pending(two)).toEqual([])
  expect(two.host.git('stash', 'list')).toMatch(
    /^stash@\{0\}: .*: On main: second work\nstash@\{1\}: .*first work$/,
  )
  two.inside('stash', 'drop', '-q', 'stash@{1}')
  const { isComplete, lines } = await two.sync()
  expect([isComplete, lines]).toEqual([true, [expect.stringContaining("git stash drop 'stash@{1}'")]])
})

test('commits that were put aside are listed until a branch of the host has them', async () => {
  using two = started()
  two.commitInside('inside')
  two.host.git('commit', '-q', '--allow-empty', '-m', 'mine')
  expect((await two.sync()).isComplete).toBe(true)
  expect(await pending(two)).toEqual(['main: not on the host yet'])
  two.host.git('branch', 'ahead', 'main~1')
  await two.sync()
  two.host.git('update-ref', 'refs/heads/ahead', 'main')
  expect(await pending(two)).toEqual(['main: not on the host yet'])
  expect(await aside(two)).toEqual([`refs/pen/${SANDBOX}/heads/main`])
  await two.merge()
  expect(await aside(two)).toEqual([])
})

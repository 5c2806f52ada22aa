/** What `pen git status` lists. */
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import type { HostPath } from '../../src/policy/files/path.ts'
import { emptyEntry } from '../../src/repository/copy/make-own-directory.ts'
import { asideIn, pendingIn } from '../../src/repository/pending.ts'
import { tryGit } from '../temporary-repository.ts'
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

test("a ref of a tool's own is named, also behind a thousand of the host's", async () => {
  using two = new TwoRepositories()
  const id = two.host.commit('one')
  const lines = Array.from({ length: 1100 }, (_, i) => `create refs/changes/${i} ${id}\n`)
  tryGit(two.host.top, ['update-ref', '--stdin'], { input: lines.join('') })
  two.start()
  two.inside('update-ref', 'refs/checkpoints/1', two.inside('commit-tree', '-m', 'x', 'main^{tree}'))
  const { isComplete, lines: told } = await two.sync()
  expect([isComplete, told]).toEqual([false, [expect.stringContaining('refs/checkpoints/1 stays')]])
})

test('what pen cannot read keeps the directory: a worktree with an odd name, a stash without a log', async () => {
  using two = started()
  two.inside('worktree', 'add', '-q', '--detach', `${two.host.base}/w\u200dt`)
  const { isComplete, lines } = await two.sync()
  expect([isComplete, lines.join()]).toEqual([false, expect.stringContaining('pen cannot read')])
  two.inside('worktree', 'remove', '--force', `${two.host.base}/w\u200dt`)
  two.host.write('one', 'changed')
  const id = two.inside('stash', 'create')
  two.inside('update-ref', '--no-create-reflog', 'refs/stash', id)
  await two.sync()
  expect(two.host.git('rev-parse', 'refs/stash')).toBe(id)
})

test('files that the user stages during a run are not staged in the sandbox, and those of the sandbox are', async () => {
  using two = started()
  two.host.commit('mine')
  two.host.write('mine', 'changed')
  two.host.git('add', 'mine')
  await two.sync()
  expect(await pending(two)).toEqual([])
  two.host.write('new', 'new')
  two.inside('add', 'new')
  expect(await pending(two)).toEqual(['staged files: not on the host yet'])
})

test('a sync or status that comes after the end of a run finds nothing, and leaves nothing', async () => {
  using two = started()
  emptyEntry(two.entry)
  expect(await two.sync()).toEqual({ isComplete: true, hasFailed: false, lines: [] })
  expect(await pending(two)).toEqual([])
  expect(readdirSync(two.entry).filter(name => name !== 'empty')).toEqual(['dir'])
})

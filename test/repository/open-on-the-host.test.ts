import { describe, expect, test } from 'bun:test'
import type { HostPath } from '../../src/policy/files/path.ts'
import { pendingIn } from '../../src/repository/pending.ts'
import { syncAll } from '../../src/repository/sync-all.ts'
import { tryGit } from '../temporary-repository.ts'
import { SANDBOX, TwoRepositories } from './two-repositories.ts'

function started(...files: readonly string[]): TwoRepositories {
  const two = new TwoRepositories()
  for (const file of ['one', 'two', 'three', ...files]) two.host.commit(file)
  return two.start()
}

const pending = async (two: TwoRepositories): Promise<string> =>
  (await pendingIn({ ...two.options, entry: two.entry, dir: two.own as HostPath }))
    .map(({ name, what }) => `${name}: ${what}`)
    .join()

const away = (branch: string): TwoRepositories => {
  const two = new TwoRepositories()
  for (const file of ['one', 'two', 'three']) two.host.commit(file)
  two.host.git('worktree', 'add', '-q', '../away', '-b', branch)
  return two
}

/** A commit on a branch, without a working tree. */
function moveInside(two: TwoRepositories, branch: string): string {
  const id = two.inside('commit-tree', '-p', branch, '-m', 'inside', `${branch}^{tree}`)
  two.inside('update-ref', `refs/heads/${branch}`, id)
  return id
}

describe('commits without a branch, while a bisect is open on the host', () => {
  test('wait, are listed, and come over when it ends', async () => {
    using two = started()
    two.host.git('bisect', 'start', 'main', 'main~2')
    two.inside('checkout', '-q', '--detach')
    const id = two.commitInside('detached')
    const { isComplete, lines } = await two.sync()
    expect([isComplete, lines.join()]).toEqual([false, expect.stringContaining('pen git import')])
    expect(await pending(two)).toBe('HEAD: not on the host yet')
    two.host.git('bisect', 'reset')
    expect((await two.sync()).isComplete).toBe(true)
    expect(two.host.git('rev-parse', 'HEAD')).toBe(id)
    expect(await pending(two)).toBe('')
  })

  test('are put aside, with a command, when HEAD of the host has moved at its end', async () => {
    using two = started()
    two.host.git('bisect', 'start', 'main', 'main~2')
    two.inside('checkout', '-q', '--detach')
    const id = two.commitInside('detached')
    await two.sync()
    two.host.git('bisect', 'reset', 'main~2')
    for (let turn = 0; turn < 2; turn++) {
      const { isComplete, lines } = await two.sync()
      const line = `to make a branch of them: git branch NAME refs/pen/${SANDBOX}/heads/HEAD`
      expect([isComplete, lines.join()]).toEqual([true, expect.stringContaining(line)])
    }
    two.host.git('gc', '-q', '--prune=now')
    expect(two.host.git('rev-parse', `refs/pen/${SANDBOX}/heads/HEAD`)).toBe(id)
  })

  test('a detached HEAD at a commit that the host has is no commit to keep', async () => {
    using two = started()
    two.host.git('checkout', '-q', '--detach', 'main~2')
    two.inside('checkout', '-q', '--detach', 'main~1')
    expect(await two.sync()).toEqual({ isComplete: true, hasFailed: false, lines: [] })
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })
})

describe('git gc on both sides keeps what cannot cross yet:', () => {
  test('commits without a branch, a branch that the host rebases, and one with a name that is refused', async () => {
    using two = started()
    two.host.git('-c', 'sequence.editor=sed -i 1ibreak', 'rebase', '-q', '-i', '--root')
    const id = moveInside(two, 'main')
    two.inside('branch', 'refused', 'main')
    const refused = moveInside(two, 'refused')
    two.inside('branch', '-m', 'refused', 'deadbeef')
    two.inside('checkout', '-q', '--detach')
    const detached = two.commitInside('detached')
    two.inside('gc', '-q')
    expect((await two.sync()).isComplete).toBe(false)
    two.inside('gc', '-q')
    two.host.git('gc', '-q', '--prune=now')
    for (const commit of [id, refused, detached]) two.inside('cat-file', '-e', commit)
    two.host.git('rebase', '--abort')
    await two.sync()
    expect(two.host.git('rev-parse', 'main', 'HEAD')).toBe(`${id}\n${detached}`)
  })
})

test('a branch of the sandbox that the user deletes stays whole inside, after git gc on both sides', async () => {
  using two = started()
  two.inside('branch', 'topic')
  const id = moveInside(two, 'topic')
  await two.sync()
  two.inside('gc', '-q', '--prune=now')
  two.host.git('branch', '-q', '-D', 'topic')
  two.host.git('gc', '-q', '--prune=now')
  expect(tryGit(two.host.top, ['cat-file', '-e', id]).code).not.toBe(0)
  expect(two.inside('log', '-1', '--format=%s', 'topic')).toBe('inside')
  expect((await two.sync()).hasFailed).toBe(false)
})

describe('an operation of the host that the sandbox has a copy of', () => {
  const rebasing = (): TwoRepositories => {
    const two = new TwoRepositories()
    for (const file of ['one', 'two', 'three']) two.host.commit(file)
    two.host.git('-c', 'sequence.editor=sed -i 1ibreak', 'rebase', '-q', '-i', 'main~1')
    return two.start()
  }

  test("is not the sandbox's, and leaves nothing to keep", async () => {
    using two = rebasing()
    two.inside('status')
    expect(await two.sync()).toEqual({ isComplete: true, hasFailed: false, lines: [] })
  })

  test('is over inside when it is over on the host, and commits of the sandbox are put aside', async () => {
    using two = rebasing()
    await two.sync()
    const id = two.commitInside('four')
    expect((await two.sync()).isComplete).toBe(false)
    two.host.git('rebase', '--continue')
    const { isComplete, lines } = await two.sync()
    expect([isComplete, lines.join()]).toEqual([true, expect.stringContaining('git branch NAME')])
    expect(two.host.git('rev-parse', `refs/pen/${SANDBOX}/heads/HEAD`)).toBe(id)
    expect(two.tryInside(['rebase', '--abort']).stderr).toContain('No rebase in progress')
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
  })

  test('and goes on with is its own', async () => {
    using two = rebasing()
    await two.sync()
    two.inside('-c', 'core.editor=true', 'rebase', '--continue')
    two.inside('-c', 'sequence.editor=sed -i 1ibreak', 'rebase', '-q', '-i', 'main~2')
    two.host.git('rebase', '--abort')
    const { isComplete, lines } = await two.sync()
    expect([isComplete, lines.join()]).toEqual([false, expect.stringContaining('unfinished in the sandbox')])
  })
})

describe('staged files stay in the sandbox, and pen says so', () => {
  test('in a linked worktree', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('worktree', 'add', '-q', 'inner', '-b', 'inner')
    two.start()
    two.host.write('inner/two', 'two')
    two.insideAt('worktrees/inner', `${two.host.top}/inner`, 'add', 'two')
    const { isComplete, lines } = await two.sync()
    expect([isComplete, lines.join()]).toEqual([false, expect.stringContaining('staged files')])
    expect(await pending(two)).toBe('staged files: not on the host yet')
  })

  test('in a repository without a commit', async () => {
    using two = new TwoRepositories()
    two.start()
    expect((await two.sync()).isComplete).toBe(true)
    two.host.write('one', 'one')
    two.inside('add', 'one')
    const { isComplete, lines } = await two.sync()
    expect([isComplete, lines.join()]).toEqual([false, expect.stringContaining('staged files')])
  })
})

describe('a branch of another worktree of the host', () => {
  test('is not what HEAD goes to; a branch that is free is', async () => {
    using two = away('away')
    two.host.git('branch', 'free')
    two.start()
    two.inside('symbolic-ref', 'HEAD', 'refs/heads/away')
    expect((await two.sync()).lines.join()).toContain('checked out in another worktree')
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    two.inside('symbolic-ref', 'HEAD', 'refs/heads/free')
    expect((await two.sync()).isComplete).toBe(true)
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/free')
  })

  test('does not move while it is rebased or bisected there', async () => {
    for (const command of [
      ['-c', 'sequence.editor=sed -i 1ibreak', 'rebase', '-q', '-i', '--root'],
      ['bisect', 'start', 'HEAD', 'HEAD~2'],
    ]) {
      using two = away('topic')
      two.start()
      const before = two.host.git('rev-parse', 'topic')
      two.host.at('../away', ...command)
      expect(two.host.git('branch', '--list', 'topic', '--format=%(worktreepath)')).toBe('')
      const id = moveInside(two, 'topic')
      expect((await two.sync()).lines.join()).toContain('another worktree')
      expect(two.host.git('rev-parse', 'topic')).toBe(before)
      expect(two.host.git('rev-parse', `refs/pen/${SANDBOX}/heads/topic`)).toBe(id)
    }
  })

  test('one that the sandbox has in a worktree of its own is where HEAD inside follows the user', async () => {
    using two = started()
    two.host.git('branch', 'other')
    await two.sync()
    two.inside('worktree', 'add', '-q', `${two.host.base}/made`, 'other')
    two.host.git('switch', '-q', 'other')
    await two.sync()
    expect(two.inside('symbolic-ref', 'HEAD')).toBe('refs/heads/other')
  })
})

/** `act` runs when pen looks at the first path of the sandbox's commits. */
async function during(two: TwoRepositories, act: () => void): Promise<void> {
  let isDone = false
  const mayWrite = (): boolean => {
    if (!isDone) act()
    isDone = true
    return true
  }
  const options = { ...two.options, entry: two.entry, dir: two.own as HostPath, mayWrite }
  const { hasFailed } = await syncAll(options)
  expect([isDone, hasFailed]).toEqual([true, false])
}

describe('what the user does while the sandbox’s commits are judged', () => {
  test('a detached commit stays checked out', async () => {
    using two = started()
    two.inside('switch', '-q', '-c', 'topic')
    two.commitInside('four')
    let id = ''
    await during(two, () => {
      two.host.git('checkout', '-q', '--detach')
      two.host.git('commit', '-q', '--allow-empty', '-m', 'mine')
      id = two.host.git('rev-parse', 'HEAD')
    })
    expect(two.host.git('rev-parse', 'HEAD')).toBe(id)
    expect(two.host.git('rev-parse', 'topic')).toBe(two.inside('rev-parse', 'topic'))
  })

  test('another branch keeps its index', async () => {
    using two = started()
    two.host.git('branch', 'other')
    two.start()
    two.commitInside('four')
    await during(two, () => two.host.git('switch', '-q', 'other'))
    expect(two.host.git('diff', '--cached', '--name-only')).toBe('')
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/other')
  })

  test('a rebase keeps its HEAD', async () => {
    using two = started()
    two.inside('switch', '-q', '-c', 'topic')
    two.commitInside('four')
    await during(two, () => {
      two.host.git('-c', 'sequence.editor=sed -i 1ibreak', 'rebase', '-q', '-i', '--root')
    })
    expect(two.host.git('rev-parse', '--symbolic-full-name', 'HEAD')).toBe('HEAD')
  })
})

test('git gc by the user while commits are judged loses none of them', async () => {
  using two = started()
  const id = two.commitInside('four')
  await during(two, () => two.host.git('gc', '-q', '--prune=now'))
  expect(two.host.git('rev-parse', 'main')).toBe(id)
  expect(two.host.git('fsck', '--strict')).toBe('')
  expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
})

describe('what the sandbox does during a sync is no conflict with a host that did nothing', () => {
  test('a new branch: HEAD and the index follow', async () => {
    using two = started()
    two.inside('switch', '-q', '-c', 'first')
    two.commitInside('four')
    await during(two, () => two.inside('switch', '-q', '-c', 'next'))
    two.commitInside('five')
    expect((await two.sync()).lines).toEqual([])
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/next')
    expect(two.host.git('status', '--porcelain')).toBe('')
  })

  test('an amended commit', async () => {
    using two = started()
    two.commitInside('four')
    await during(two, () => two.inside('commit', '-q', '--amend', '-m', 'amended'))
    expect((await two.sync()).lines).toEqual([])
    expect(two.host.git('log', '-1', '--format=%s')).toBe('amended')
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })
})

test('the index of the host goes with its branch, also where HEAD inside is elsewhere', async () => {
  using two = started()
  two.host.git('branch', 'other')
  await two.sync()
  two.host.git('switch', '-q', 'other')
  two.inside('switch', '-q', '-c', 'third', 'other')
  moveInside(two, 'other')
  const tree = two.inside('rev-parse', 'main~1^{tree}')
  two.inside('update-ref', 'refs/heads/other', two.inside('commit-tree', '-p', 'other', '-m', 'x', tree))
  await two.sync()
  expect(two.host.git('rev-parse', 'other')).toBe(two.inside('rev-parse', 'other'))
  expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/other')
  expect(two.host.git('diff', '--cached', '--name-only')).toBe('')
})

test('a branch that the host rebases in the project waits until the rebase ends', async () => {
  using two = started()
  two.host.git('-c', 'sequence.editor=sed -i 1ibreak', 'rebase', '-q', '-i', '--root')
  const before = two.host.git('rev-parse', 'main')
  const id = moveInside(two, 'main')
  expect((await two.sync()).isComplete).toBe(false)
  expect(two.host.git('rev-parse', 'main')).toBe(before)
  two.host.git('rebase', '--abort')
  expect((await two.sync()).isComplete).toBe(true)
  expect(two.host.git('rev-parse', 'main')).toBe(id)
})

import { describe, expect, test } from 'bun:test'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { TwoRepositories } from './two-repositories.ts'

const DONE = { isComplete: true, hasFailed: false, lines: [] }

function started(...files: readonly string[]): TwoRepositories {
  const two = new TwoRepositories()
  for (const file of ['one', ...files]) two.host.commit(file)
  return two.start()
}

/** What git says of both sides, which is the same after a sync. */
const SAME = [
  ['for-each-ref', 'refs/heads', 'refs/tags', 'refs/notes'],
  ['status', '--porcelain=2', '--branch'],
  ['rev-parse', 'HEAD'],
]

function expectSame(two: TwoRepositories): void {
  for (const args of SAME) expect(two.inside(...args)).toBe(two.host.git(...args))
  two.host.git('fsck', '--strict')
}

describe('everyday git inside', () => {
  test('a commit is on the host: branch, reflog, index, and a clean status', async () => {
    using two = started()
    const id = two.commitInside('two')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    expect(two.host.git('status', '--porcelain')).toBe('')
    expect(two.host.git('reflog', '-1', '--format=%gn %gs', 'main')).toBe('pen pen: from the sandbox')
    expectSame(two)
  })

  test('a small import makes loose objects, a large one a pack', async () => {
    using two = started()
    two.commitInside('two')
    await two.sync()
    expect(two.host.git('count-objects', '-v')).toContain('packs: 0')
    for (let i = 0; i < 120; i++) two.host.write(`many/${i}`, `${i}`)
    two.inside('add', '-A')
    two.inside('commit', '-q', '-m', 'many')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('count-objects', '-v')).toContain('packs: 1')
    expectSame(two)
  })

  test('amend and reset: the branch moves back, and the reflog has the old commit', async () => {
    using two = started('two')
    const first = two.commitInside('three')
    await two.sync()
    two.inside('commit', '-q', '--amend', '-m', 'amended')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('log', '-1', '--format=%s')).toBe('amended')
    two.inside('reset', '-q', '--hard', 'HEAD~2')
    expect(await two.sync()).toEqual(DONE)
    expect(two.isReachableOnHost(first)).toBe(true)
    expectSame(two)
  })

  test('branches, switches, merges and tags', async () => {
    using two = started()
    two.inside('switch', '-q', '-c', 'feature/a')
    two.commitInside('feature')
    two.inside('tag', '-a', '-m', 'annotated', 'v1')
    two.inside('tag', 'light')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/feature/a')
    expectSame(two)
    two.inside('switch', '-q', 'main')
    two.commitInside('on-main')
    two.inside('merge', '-q', '--no-edit', 'feature/a')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('rev-list', '--parents', '-1', 'main').split(' ')).toHaveLength(3)
    expectSame(two)
  })

  test('a rebase, and one that stops: HEAD and index wait until it ends', async () => {
    using two = started('file')
    two.inside('switch', '-q', '-c', 'topic')
    two.commitInside('file', 'topic')
    two.inside('switch', '-q', 'main')
    two.commitInside('file', 'main')
    two.inside('switch', '-q', 'topic')
    await two.sync()
    const before = two.host.git('rev-parse', 'topic')
    expect(two.tryInside(['rebase', 'main']).code).toBe(1)
    const waiting = await two.sync()
    expect(waiting.isComplete).toBe(false)
    expect(waiting.lines.join()).toContain('unfinished')
    expect(two.host.git('rev-parse', 'HEAD')).toBe(before)
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/topic')
    two.host.write('file', 'resolved')
    two.inside('add', 'file')
    two.inside('rebase', '--continue')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('merge-base', '--is-ancestor', 'main', 'topic')).toBe('')
    expectSame(two)
  })

  test('a merge, a pick and a bisect that stop wait, too', async () => {
    for (const stop of [
      ['merge', 'topic'],
      ['cherry-pick', 'topic'],
      ['bisect', 'start', 'main', 'main~1'],
    ]) {
      using two = started('file')
      two.inside('switch', '-q', '-c', 'topic')
      two.commitInside('file', 'topic')
      two.inside('switch', '-q', 'main')
      two.commitInside('file', 'main')
      await two.sync()
      two.tryInside(stop)
      const { isComplete, lines } = await two.sync()
      expect([stop[0], isComplete, lines.join().includes('unfinished')]).toEqual([stop[0], false, true])
      expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    }
  })

  test('a stash is a stash on the host, with its untracked files', async () => {
    using two = started()
    two.host.write('one', 'changed')
    two.host.write('untracked', 'new')
    two.inside('stash', '-u')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('stash', 'list').split('\n')).toHaveLength(1)
    two.host.git('stash', 'pop')
    expect(two.host.git('status', '--porcelain')).toBe(' M one\n?? untracked')
  })

  test('two stashes keep their order, and one that is known is not stored again', async () => {
    using two = started()
    for (const text of ['a', 'b']) {
      two.host.write('one', text)
      two.inside('stash')
    }
    await two.sync()
    await two.sync()
    expect(two.host.git('log', '-g', '--format=%H', 'refs/stash')).toBe(
      two.inside('log', '-g', '--format=%H', 'refs/stash'),
    )
  })

  test('notes', async () => {
    using two = started()
    two.inside('notes', 'add', '-m', 'a note')
    // git takes them for what it has shown of a file.
    two.inside('notes', '--ref=textconv/x', 'add', '-m', 'another text')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('notes', 'show')).toBe('a note')
    expect(two.host.git('for-each-ref', '--format=%(refname)', 'refs/notes')).toBe('refs/notes/commits')
  })

  test('a detached HEAD, and back', async () => {
    using two = started('two')
    two.inside('checkout', '-q', '--detach', 'HEAD~1')
    const id = two.commitInside('three')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('rev-parse', 'HEAD')).toBe(id)
    expect(two.host.git('branch', '--show-current')).toBe('')
    two.inside('checkout', '-q', 'main')
    expect(await two.sync()).toEqual(DONE)
    expect(two.isReachableOnHost(id)).toBe(true)
    expectSame(two)
  })

  test('the first commit of a repository, and an orphan branch', async () => {
    using two = new TwoRepositories()
    two.start()
    const id = two.commitInside('one')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    expectSame(two)
    two.inside('switch', '-q', '--orphan', 'pages')
    two.commitInside('page')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('rev-list', '--count', 'pages')).toBe('1')
    expectSame(two)
  })

  test('an orphan branch that is synced before its first commit: the index follows that commit', async () => {
    using two = started('two')
    two.inside('checkout', '-q', '--orphan', 'pages')
    two.inside('rm', '-qrf', '--cached', '.')
    await two.sync()
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    expect(two.host.git('status', '--porcelain')).toBe('')
    two.commitInside('page')
    await two.sync()
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/pages')
    expect(two.host.git('ls-files')).toBe('page')
    expectSame(two)
  })

  test('a SHA-256 repository', async () => {
    using two = new TwoRepositories(['--object-format=sha256'])
    two.host.commit('one')
    two.start()
    expect(two.commitInside('two')).toHaveLength(64)
    expect(await two.sync()).toEqual(DONE)
    expectSame(two)
  })

  test('a name with odd bytes, a link, and an executable file', async () => {
    using two = started()
    for (const name of ['a b', 'tab\there', 'new\nline', 'größe', '"quoted"']) two.host.write(name, name)
    two.inside('add', '-A')
    two.inside('update-index', '--chmod=+x', 'one')
    two.inside('commit', '-q', '-m', 'odd')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('ls-files', '-s')).toBe(two.inside('ls-files', '-s'))
    two.host.git('fsck', '--strict')
  })

  test('a commit that removes and renames files', async () => {
    using two = started('dir/a', 'dir/b')
    two.inside('rm', '-q', 'dir/a')
    two.inside('mv', 'dir/b', 'c')
    two.inside('commit', '-q', '-m', 'moved')
    expect(await two.sync()).toEqual(DONE)
    expectSame(two)
  })

  test('a linked worktree in the project has its own HEAD and index', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('worktree', 'add', '-q', 'inner', '-b', 'inner')
    two.start()
    const tree = `${two.host.top}/inner`
    two.host.write('inner/two', 'two')
    two.insideAt('worktrees/inner', tree, 'add', 'two')
    two.insideAt('worktrees/inner', tree, 'commit', '-q', '-m', 'in a worktree')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.at('inner', 'log', '-1', '--format=%s')).toBe('in a worktree')
    expect(two.host.at('inner', 'status', '--porcelain')).toBe('')
    expect(two.host.git('status', '--porcelain')).toBe('?? inner/')
  })

  test('a project that is a linked worktree itself', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('worktree', 'add', '-q', '../linked', '-b', 'linked')
    const tree = `${two.host.base}/linked`
    two.start(tree)
    await Bun.write(`${tree}/two`, 'two')
    two.insideAt('worktrees/linked', tree, 'add', 'two')
    two.insideAt('worktrees/linked', tree, 'commit', '-q', '-m', 'linked')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.at('../linked', 'log', '-1', '--format=%s')).toBe('linked')
    expect(two.host.at('../linked', 'status', '--porcelain')).toBe('')
    expect(two.host.git('status', '--porcelain')).toBe('')
  })

  test.each(['wt+x', 'größe', 'a b', '(x)$y'])('a worktree may have the name %j', async name => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('branch', 'other')
    two.host.git('worktree', 'add', '-q', '../linked', 'other')
    // Old versions of git keep every character of the directory's name.
    renameSync(`${two.host.dir}/worktrees/linked`, `${two.host.dir}/worktrees/${name}`)
    const tree = `${two.host.base}/linked`
    writeFileSync(`${tree}/.git`, `gitdir: ${two.host.dir}/worktrees/${name}\n`)
    two.start()
    const tip = two.host.git('rev-parse', 'other')
    two.inside(
      'update-ref',
      'refs/heads/other',
      two.inside('commit-tree', '-p', 'other', '-m', 'x', 'other^{tree}'),
    )
    expect((await two.sync()).lines.join()).toContain('checked out in another worktree')
    expect(two.host.git('rev-parse', 'other')).toBe(tip)
    two.start(tree)
    two.insideAt(`worktrees/${name}`, tree, 'commit', '-q', '--allow-empty', '-m', 'in it')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.at('../linked', 'log', '-1', '--format=%s')).toBe('in it')
  })

  test('a worktree whose name cannot be read stops the sync: its branch must not move', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('worktree', 'add', '-q', '../linked', '-b', 'other')
    renameSync(`${two.host.dir}/worktrees/linked`, `${two.host.dir}/worktrees/a\nb`)
    two.start()
    two.commitInside('two')
    expect((await two.sync()).lines.join()).toContain('pen cannot read what git says')
    expect(two.host.git('rev-list', '--count', 'other', 'main')).toBe('1')
  })

  test('a worktree of the host that is removed inside stays on the host, and holds up nothing', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('worktree', 'add', '-q', 'inner', '-b', 'inner')
    two.start()
    rmSync(`${two.own}/worktrees/inner`, { recursive: true })
    const id = two.commitInside('two')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    expect(two.host.git('worktree', 'list')).toContain('[inner]')
  })

  test('a worktree that is made inside is reported, and its branch is on the host', async () => {
    using two = started()
    two.inside('worktree', 'add', '-q', `${two.host.top}/made`, '-b', 'made')
    const { isComplete, lines } = await two.sync()
    expect(isComplete).toBe(false)
    expect(lines.join()).toContain('the worktree made')
    expect(two.host.git('rev-parse', 'made')).toBe(two.host.git('rev-parse', 'main'))
    expect(two.host.git('worktree', 'list').split('\n')).toHaveLength(1)
  })

  test('staged files stay staged inside, and pen says so', async () => {
    using two = started()
    two.host.write('staged', 'x')
    two.inside('add', 'staged')
    const { isComplete, lines } = await two.sync()
    expect([isComplete, lines.join().includes('staged')]).toEqual([false, true])
    expect(two.host.git('status', '--porcelain')).toBe('?? staged')
  })

  test('settings, hooks and remote-tracking refs do not cross', async () => {
    using two = started()
    two.inside('config', 'remote.origin.url', 'https://git.example.com/a')
    two.inside('update-ref', 'refs/remotes/origin/main', 'HEAD')
    two.inside('update-ref', 'refs/replace/0123456789012345678901234567890123456789', 'HEAD')
    two.inside('update-ref', 'refs/odd/place', 'HEAD')
    await Bun.write(`${two.own}/hooks/pre-commit`, '#!/bin/sh\n')
    const before = two.listing()
    expect((await two.sync()).lines.join()).toContain('remote.origin.url')
    expect(two.listing()).toEqual(before)
  })
})

describe('the other way', () => {
  test('commits, branches, tags, stashes and switches of the user are inside', async () => {
    using two = started()
    two.host.git('switch', '-q', '-c', 'theirs')
    two.host.commit('two')
    two.host.git('tag', 'v1')
    two.host.git('update-ref', 'refs/remotes/origin/main', 'HEAD')
    two.host.write('one', 'changed')
    two.host.git('stash')
    expect(await two.sync()).toEqual(DONE)
    expectSame(two)
    expect(two.inside('rev-parse', 'origin/main')).toBe(two.host.git('rev-parse', 'theirs'))
    expect(two.inside('stash', 'list').split('\n')).toHaveLength(1)
    expect(await two.sync()).toEqual(DONE)
  })

  test('a branch that the user deleted does not come back, nor one that was deleted inside', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('branch', 'old')
    two.host.git('branch', 'kept')
    two.start()
    two.host.git('branch', '-q', '-D', 'old')
    two.inside('branch', '-q', '-D', 'kept')
    for (let i = 0; i < 2; i++) expect((await two.sync()).lines.join()).toContain('kept')
    expect(two.host.git('branch', '--format=%(refname:short)')).toBe('kept\nmain')
    expect(two.inside('branch', '--format=%(refname:short)')).toBe('main\nold')
  })

  test('commits of both sides on different branches cross in one sync', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('branch', 'a')
    two.start()
    two.commitInside('inside')
    const tree = two.host.git('rev-parse', 'HEAD^{tree}')
    two.host.git('update-ref', 'refs/heads/a', two.host.git('commit-tree', '-p', 'a', '-m', 'host', tree))
    expect(await two.sync()).toEqual(DONE)
    expectSame(two)
  })
})

test("a ref of a tool's own stays inside with a line, and one whose commit the host has needs none", async () => {
  using two = started()
  two.inside('update-ref', 'refs/checkpoints/known', 'HEAD')
  expect(await two.sync()).toEqual(DONE)
  const id = two.inside('commit-tree', '-p', 'HEAD', '-m', 'x', 'HEAD^{tree}')
  two.inside('update-ref', 'refs/checkpoints/1', id)
  const { isComplete, lines } = await two.sync()
  expect([isComplete, lines.join()]).toEqual([
    false,
    expect.stringContaining('refs/checkpoints/1 stays in the sandbox'),
  ])
  expect(two.host.git('for-each-ref', 'refs/checkpoints')).toBe('')
  two.inside('branch', 'kept', id)
  expect((await two.sync()).isComplete).toBe(true)
})

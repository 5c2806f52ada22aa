import { describe, expect, test } from 'bun:test'
import { utimesSync, writeFileSync } from 'node:fs'
import { emptyEntry } from '../../src/repository/copy/make-own-directory.ts'
import { SANDBOX, TwoRepositories } from './two-repositories.ts'

function started(): TwoRepositories {
  const two = new TwoRepositories()
  two.host.commit('one')
  two.host.git('branch', 'other')
  return two.start()
}

/** A commit on the host without its working tree, which both sides share. */
function hostCommit(two: TwoRepositories, branch: string, message = 'host'): string {
  const tree = two.host.git('rev-parse', `${branch}^{tree}`)
  const id = two.host.git('commit-tree', '-p', branch, '-m', message, tree)
  two.host.git('update-ref', `refs/heads/${branch}`, id)
  return id
}

/** What pen tells the user to type. */
const commandIn = (line: string): string => /: (git [^;]*)$/.exec(line)?.[1] ?? 'exit 1'

const aside = (two: TwoRepositories, rest: string): string =>
  two.host.git('rev-parse', '-q', '--verify', `refs/pen/${SANDBOX}/${rest}`)

describe('a branch that moved on both sides', () => {
  test('stays as the host has it; the commits of the sandbox are below refs/pen, with the command', async () => {
    using two = started()
    const [inner, outer] = [two.commitInside('two'), hostCommit(two, 'main')]
    const { lines } = await two.sync()
    expect(two.host.git('rev-parse', 'main')).toBe(outer)
    expect(aside(two, 'heads/main')).toBe(inner)
    expect(lines.join()).toContain(`refs/pen/${SANDBOX}/heads/main`)
    expect(two.inside('rev-parse', 'main')).toBe(inner)
    two.host.git('fsck', '--strict')
  })

  test('and was merged inside moves on', async () => {
    using two = started()
    two.commitInside('two')
    const outer = hostCommit(two, 'main')
    await two.sync()
    two.inside('merge', '-q', '--no-edit', outer)
    await two.sync()
    expect(two.host.git('rev-parse', 'main')).toBe(two.inside('rev-parse', 'main'))
    two.host.git('merge-base', '--is-ancestor', outer, 'main')
  })

  test('is merged by the command that pen prints; the working tree stays as it is', async () => {
    using two = started()
    two.host.write('staged', 'by the user')
    two.host.git('add', 'staged')
    const inner = two.commitInside('two')
    two.host.write('mine', 'mine')
    two.host.git('add', 'mine')
    two.host.git('commit', '-q', '-m', 'host', '--', 'mine')
    const outer = two.host.git('rev-parse', 'main')
    two.host.write('two', 'not committed yet')
    const { lines } = await two.sync()
    expect(lines.join()).toContain('to merge them: pen git import --merge')
    expect((await two.merge()).join()).toContain("main has the sandbox's commits now")
    for (const id of [inner, outer]) two.host.git('merge-base', '--is-ancestor', id, 'main')
    expect(two.host.git('status', '--short')).toBe('A  staged\n M two')
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
    two.host.git('fsck', '--strict')
    await two.sync()
    expect(two.inside('rev-parse', 'main')).toBe(two.host.git('rev-parse', 'main'))
  })

  test('and conflicts is merged by the command that pen prints then', async () => {
    using two = started()
    two.commitInside('one', 'inside')
    const inner = two.inside('rev-parse', 'main')
    two.host.commit('one', 'host')
    await two.sync()
    const [line = ''] = await two.merge()
    expect(line).toContain("main conflicts with the sandbox's commits in one")
    two.host.write('two', 'not committed')
    const ran = two.host.shell(commandIn(line))
    expect(ran).toContain('CONFLICT')
    expect(two.host.git('rev-parse', 'MERGE_HEAD')).toBe(inner)
  })

  test('in a second run, too: the commits of the first one are still there, and both are merged', async () => {
    using two = started()
    const ids: string[] = []
    for (const name of ['first', 'second']) {
      ids.push(two.commitInside(name))
      hostCommit(two, 'main', name)
      await two.sync()
      // The next run gets a new copy.
      emptyEntry(two.entry)
      two.start()
    }
    const refs = two.host.git('for-each-ref', '--format=%(objectname)', 'refs/pen').split('\n')
    expect(new Set(refs)).toEqual(new Set(ids))
    expect(await two.merge()).toHaveLength(2)
    for (const id of ids) two.host.git('merge-base', '--is-ancestor', id, 'main')
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })
})

test('a name that the sandbox chooses is not in the way of commits that make room, and none are lost', async () => {
  using two = started()
  const base = two.inside('rev-parse', 'main')
  const ids: string[] = []
  for (const name of ['first', 'second', 'first again']) {
    two.inside('reset', '-q', '--hard', name === 'first again' ? (ids[0] ?? '') : base)
    ids.push(name === 'first again' ? (ids[0] ?? '') : two.commitInside(name))
    // As an older version of pen named them, and as a directory where a ref would be.
    for (const ref of [`main-${ids[0]?.slice(0, 10)}`, `main-${ids[0]?.slice(0, 10)}-x`])
      two.inside('update-ref', `refs/heads/${ref}`, ids.at(-1) ?? '')
    hostCommit(two, 'main', name)
    await two.sync()
  }
  const refs = two.host.git('for-each-ref', '--format=%(objectname) %(refname)', 'refs/pen').split('\n')
  expect(aside(two, 'heads/main')).toBe(ids[0] ?? '')
  const older = refs
    .filter(line => /\/older\/[0-9a-f]{32}\/heads\/main$/.test(line))
    .map(line => line.slice(0, 40))
  expect(older).toEqual(expect.arrayContaining([ids[1] ?? '']))
  expect(older).toHaveLength(2)
})

describe('put aside', () => {
  test('is a branch that the host has checked out in a worktree outside the project', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('worktree', 'add', '-q', '../away', '-b', 'away')
    two.start()
    const tree = two.inside('rev-parse', 'HEAD^{tree}')
    const id = two.inside('commit-tree', '-p', 'away', '-m', 'x', tree)
    two.inside('update-ref', 'refs/heads/away', id)
    const { lines } = await two.sync()
    expect(lines.join()).toContain('another worktree')
    expect(two.host.at('../away', 'status', '--porcelain')).toBe('')
    expect(aside(two, 'heads/away')).toBe(id)
    two.host.shell(commandIn(lines.join()))
    expect(two.host.at('../away', 'rev-parse', 'HEAD')).toBe(id)
  })

  test('is a tag that moved, and a branch that the host deleted', async () => {
    using two = new TwoRepositories()
    const first = two.host.commit('one')
    two.host.git('tag', 'v1')
    two.host.git('branch', 'gone')
    two.start()
    const id = two.commitInside('two')
    two.inside('tag', '-f', 'v1')
    two.inside('branch', '-q', '-f', 'gone')
    two.host.git('branch', '-q', '-D', 'gone')
    const { lines } = await two.sync()
    expect(two.host.git('rev-parse', 'v1')).toBe(first)
    expect([aside(two, 'tags/v1'), aside(two, 'heads/gone')]).toEqual([id, id])
    two.host.shell(commandIn(lines.find(line => line.includes('v1')) ?? ''))
    expect(two.host.git('rev-parse', 'v1')).toBe(id)
    expect(two.host.git('branch', '--format=%(refname:short)')).toBe('main')
  })

  test('is a branch whose name needs a directory where the host has a branch', async () => {
    using two = started()
    two.inside('branch', '-q', '-D', 'other')
    two.inside('branch', 'other/deep')
    await two.sync()
    expect(two.host.git('branch', '--format=%(refname:short)')).toBe('main\nother')
    expect(aside(two, 'heads/other/deep')).toBe(two.inside('rev-parse', 'main'))
  })
})

describe('refused', () => {
  test('are names that mislead, and the others cross', async () => {
    using two = started()
    const id = two.inside('rev-parse', 'main')
    for (const name of [
      'heads/HEAD',
      'heads/-x',
      'heads/deadbeef',
      'tags/main',
      'heads/refs/heads/x',
      'heads/OTHER',
    ])
      two.inside('update-ref', `refs/${name}`, id)
    two.inside('update-ref', 'refs/heads/fine', id)
    const { lines, isComplete } = await two.sync()
    expect(lines).toHaveLength(6)
    expect(isComplete).toBe(false)
    expect(two.host.git('for-each-ref', '--format=%(refname)')).toBe(
      'refs/heads/fine\nrefs/heads/main\nrefs/heads/other',
    )
  })
})

test('a branch that names no commit stays in the sandbox; a tag of a tree and other branches come over', async () => {
  using two = started()
  const [blob, tree] = [two.inside('hash-object', '-w', `${two.host.top}/one`), two.inside('write-tree')]
  hostCommit(two, 'other')
  writeFileSync(`${two.own}/refs/heads/blob`, `${blob}\n`)
  writeFileSync(`${two.own}/refs/heads/other`, `${tree}\n`)
  two.inside('tag', 'light', tree)
  const id = two.commitInside('two')
  const { lines, hasFailed } = await two.sync()
  expect(hasFailed).toBe(false)
  for (const name of ['blob', 'other'])
    expect(lines.join()).toContain(`refs/heads/${name} stays in the sandbox: it names no commit`)
  expect(two.host.git('for-each-ref', '--format=%(refname)', 'refs/pen', 'refs/heads/blob')).toBe('')
  expect([two.host.git('rev-parse', 'light'), two.host.git('rev-parse', 'main')]).toEqual([tree, id])
})

describe("the host's index", () => {
  test('keeps staged files, intent-to-add, skip-worktree and assume-unchanged', async () => {
    using two = new TwoRepositories()
    for (const name of ['one', 'skipped', 'assumed', 'changed', 'plain']) two.host.commit(name)
    two.host.git('update-index', '--skip-worktree', 'skipped')
    two.host.git('update-index', '--assume-unchanged', 'assumed')
    two.host.write('staged', 'staged by the user')
    two.host.git('add', 'staged')
    two.host.write('intended', 'later')
    two.host.git('add', '-N', 'intended')
    two.host.write('changed', 'staged change')
    two.host.git('add', 'changed')
    two.start()
    for (const name of ['skipped', 'assumed'])
      two.inside('update-index', '--no-skip-worktree', '--no-assume-unchanged', name)
    for (const name of ['skipped', 'assumed', 'plain']) two.host.write(name, `new ${name}`)
    two.inside('commit', '-q', '-m', 'some', '--', 'skipped', 'assumed', 'plain')
    await two.sync()
    expect(two.host.git('rev-parse', 'main')).toBe(two.inside('rev-parse', 'main'))
    const shown = two.host.git('ls-files', '-v')
    expect(shown.split('\n')).toEqual([
      'h assumed',
      'H changed',
      'H intended',
      'H one',
      'H plain',
      'S skipped',
      'H staged',
    ])
    expect(two.host.git('diff', '--cached', '--name-status')).toBe('M\tchanged\nA\tstaged')
    expect(two.host.git('show', ':changed')).toBe('staged change')
    expect(two.host.git('show', ':plain')).toBe('new plain')
    expect(two.host.git('status', '--porcelain', 'intended')).toBe(' A intended')
  })

  test('keeps a staged file where the commit has a directory, and the other way round', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const blob = two.host.git('hash-object', '-w', `${two.host.top}/one`)
    two.host.git('update-index', '--add', '--cacheinfo', `100644,${blob},a`)
    two.host.git('update-index', '--add', '--cacheinfo', `100644,${blob},b/c`)
    two.commitInside('a/b', 'x')
    two.commitInside('b', 'x')
    await two.sync()
    expect(two.host.git('ls-files')).toBe('a\nb/c\none')
    two.host.git('fsck', '--strict')
  })

  test('has the files of a commit that makes a file a directory, and a directory a file', async () => {
    using two = new TwoRepositories()
    for (const path of ['file', 'dir/a', 'dir/b']) two.host.commit(path)
    two.start()
    two.inside('rm', '-q', '-r', 'file', 'dir')
    two.host.write('file/in', 'x')
    two.host.write('dir', 'x')
    two.inside('add', '.')
    two.inside('commit', '-q', '-m', 'other way round')
    expect((await two.sync()).lines).toEqual([])
    expect(two.host.git('ls-files')).toBe('dir\nfile/in')
    expect(two.host.git('status', '--porcelain')).toBe('')
  })

  test('keeps a conflict of the host, and waits while its merge is open', async () => {
    using two = new TwoRepositories()
    two.host.commit('file', 'base')
    two.host.git('switch', '-q', '-c', 'topic')
    two.host.commit('file', 'topic')
    two.host.git('switch', '-q', 'main')
    two.host.commit('file', 'main')
    two.start()
    expect(() => two.host.git('merge', 'topic')).toThrow()
    const before = two.host.git('ls-files', '-s')
    two.inside('commit', '-q', '--allow-empty', '-m', 'meanwhile')
    const { lines } = await two.sync()
    expect(two.host.git('ls-files', '-s')).toBe(before)
    expect(lines.join()).toContain('finish or abort it there, then: pen git import')
    two.host.git('merge', '--abort')
    await two.sync()
    expect(two.host.git('rev-parse', 'main')).toBe(two.inside('rev-parse', 'main'))
  })

  test('waits while another git command of the user holds the lock', async () => {
    using two = started()
    const id = two.commitInside('two')
    await Bun.write(`${two.host.dir}/index.lock`, '')
    await two.sync()
    expect(two.host.git('rev-parse', 'main')).not.toBe(id)
    Bun.spawnSync(['rm', `${two.host.dir}/index.lock`])
    await two.sync()
    expect(two.host.git('rev-parse', 'main')).toBe(id)
  })

  test('in a sparse checkout keeps its patterns and bits', async () => {
    using two = new TwoRepositories()
    two.host.commit('a/one')
    two.host.commit('b/two')
    two.host.git('sparse-checkout', 'set', 'a')
    two.start()
    two.commitInside('a/one', 'changed')
    await two.sync()
    expect(two.host.git('ls-files', '-v')).toBe('H a/one\nS b/two')
    expect(two.host.git('status', '--porcelain')).toBe('')
    two.host.write('b/new', 'outside')
    two.host.write('a/new', 'inside')
    two.inside('add', '--sparse', '.')
    two.inside('commit', '-q', '-m', 'new')
    two.inside('sparse-checkout', 'reapply')
    await two.sync()
    expect(two.host.git('ls-files', '-v')).toBe('H a/new\nH a/one\nS b/new\nS b/two')
    expect(two.host.git('status', '--porcelain')).toBe('')
  })

  test('in a sparse checkout that left out no file yet', async () => {
    using two = new TwoRepositories()
    two.host.commit('a/one')
    two.host.git('sparse-checkout', 'set', 'a')
    two.start()
    two.host.write('b/new', 'outside')
    two.inside('add', '--sparse', '.')
    two.inside('commit', '-q', '-m', 'new')
    two.inside('sparse-checkout', 'reapply')
    await two.sync()
    expect(two.host.git('ls-files', '-v')).toBe('H a/one\nS b/new')
    expect(two.host.git('status', '--porcelain')).toBe('')
    two.host.git('sparse-checkout', 'disable')
    two.inside('sparse-checkout', 'disable')
    two.commitInside('c/new')
    await two.sync()
    expect(two.host.git('ls-files', '-v', 'c')).toBe('H c/new')
  })

  test('keeps its time: a change in the second of the last status is still seen', async () => {
    using two = new TwoRepositories()
    two.host.commit('changed', 'aaaa')
    two.start()
    const time = Math.floor(Date.now() / 1000) - 5
    const age = (path: string): void => utimesSync(`${two.host.top}/${path}`, time, time)
    age('changed')
    two.host.git('update-index', '--refresh')
    age('.git/index')
    two.host.write('changed', 'bbbb')
    age('changed')
    two.commitInside('other')
    await two.sync()
    // As if the change was in the same second: git compares the time of the content, not of the inode.
    expect(two.host.git('-c', 'core.trustctime=false', 'diff', '--name-only')).toBe('changed')
    expect(two.host.git('status', '--porcelain')).toBe(' M changed')
  })
})

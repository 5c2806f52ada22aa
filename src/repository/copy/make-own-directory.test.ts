import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { TemporaryRepository, tryGit } from '../../../test/temporary-repository.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import { readSynced } from '../sync/synced-file.ts'
import { emptyEntry, makeOwnDirectory, syncedFile } from './make-own-directory.ts'

/** The objects are borrowed from where they are, so that git on the host works on the copy. */
const directory = (path: string, submodules: readonly string[] = []): GitDirectory => ({
  path,
  lentAt: path,
  alternates: [],
  hasLfs: false,
  submodules: submodules.map(below => directory(`${path}/${below}`)),
})

function copy(repository: TemporaryRepository, submodules: readonly string[] = []): string {
  const to = `${repository.base}/own`
  makeOwnDirectory(directory(repository.dir, submodules), to, `${repository.base}/synced`)
  return to
}

describe('git on the copy', () => {
  test('sees the same refs, HEAD, index, stash and reflog, and the objects are borrowed', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    repository.commit('two')
    repository.git('tag', '-a', '-m', 'annotated', 'v1')
    repository.git('switch', '-q', '-c', 'feature/a')
    repository.write('one', 'stashed')
    repository.git('stash')
    repository.write('staged', 'staged')
    repository.git('add', 'staged')
    const own = copy(repository)
    for (const args of [
      ['for-each-ref'],
      ['status', '--porcelain=2', '--branch'],
      ['stash', 'list'],
      ['log', '--format=%H', '-g', 'HEAD'],
      ['rev-parse', '@{-1}'],
      ['diff', '--cached'],
    ])
      expect(repository.with(own, ...args)).toBe(repository.git(...args))
    repository.with(own, 'fsck', '--strict')
    expect(readdirSync(`${own}/objects`).sort((a, b) => (a < b ? -1 : 1))).toEqual(['info', 'pack'])
  })

  test('commits into the copy, and the host sees nothing of it', () => {
    using repository = new TemporaryRepository()
    const before = repository.commit('one')
    const own = copy(repository)
    repository.write('two', 'two')
    repository.with(own, 'add', 'two')
    repository.with(own, 'commit', '-q', '-m', 'inside')
    expect(repository.git('rev-parse', 'HEAD')).toBe(before)
    expect(repository.git('status', '--porcelain')).toBe('?? two')
    expect(repository.with(own, 'log', '--format=%s')).toBe('inside\none one')
  })

  test('works on a branch without a commit, on a detached HEAD, and with SHA-256', () => {
    using unborn = new TemporaryRepository()
    const own = copy(unborn)
    unborn.write('one', 'one')
    unborn.with(own, 'add', 'one')
    unborn.with(own, 'commit', '-q', '-m', 'first')
    using detached = new TemporaryRepository(['--object-format=sha256'])
    const id = detached.commit('one')
    detached.git('checkout', '-q', '--detach')
    const other = copy(detached)
    expect(detached.with(other, 'rev-parse', 'HEAD')).toBe(id)
    expect(tryGit(detached.top, ['symbolic-ref', '-q', 'HEAD'], { env: { GIT_DIR: other } }).code).toBe(1)
  })

  test('goes on with an unfinished rebase', () => {
    using repository = conflict()
    expect(tryGit(repository.top, ['rebase', 'other']).code).toBe(1)
    const own = copy(repository)
    expect(repository.with(own, 'status')).toContain('rebase in progress')
    repository.write('file', 'resolved')
    repository.with(own, 'add', 'file')
    repository.with(own, 'rebase', '--continue')
    expect(repository.with(own, 'log', '-1', '--format=%s', 'main')).toBe('file mine')
  })

  test('goes on with an unfinished merge, pick, revert and bisect', () => {
    using repository = conflict()
    expect(tryGit(repository.top, ['merge', 'other']).code).toBe(1)
    const own = copy(repository)
    repository.write('file', 'resolved')
    repository.with(own, 'add', 'file')
    repository.with(own, 'commit', '-q', '-m', 'merged')
    expect(repository.with(own, 'rev-list', '--parents', '-1', 'HEAD').split(' ')).toHaveLength(3)

    using picked = conflict()
    expect(tryGit(picked.top, ['cherry-pick', 'other']).code).toBe(1)
    expect(picked.with(copy(picked), 'status')).toContain('cherry-picking')

    using bisected = conflict()
    bisected.git('bisect', 'start', 'main', 'main~1')
    const half = copy(bisected)
    expect(bisected.with(half, 'bisect', 'log')).toBe(bisected.git('bisect', 'log'))
    bisected.with(half, 'bisect', 'reset')
  })

  test('has linked worktrees, each with its HEAD and index', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    repository.git('worktree', 'add', '-q', 'inner', '-b', 'inner')
    repository.write('inner/staged', 'x')
    repository.at('inner', 'add', 'staged')
    const own = copy(repository)
    const record = `${own}/worktrees/inner`
    const env = { GIT_DIR: record, GIT_WORK_TREE: `${repository.top}/inner` }
    const { stdout } = tryGit(`${repository.top}/inner`, ['status', '--porcelain', '--branch'], { env })
    expect(stdout).toBe('## inner\nA  staged\n')
    expect(readFileSync(`${record}/gitdir`, 'utf8').trim()).toBe(`${repository.top}/inner/.git`)
    expect([...readSynced(`${repository.base}/synced`).heads.keys()]).toEqual(['.', 'worktrees/inner'])
  })

  test('has submodules, each a directory of its own with its own record', () => {
    using library = new TemporaryRepository()
    const id = library.commit('lib')
    using repository = new TemporaryRepository()
    repository.git('submodule', '--quiet', 'add', library.top, 'libs/one')
    const own = copy(repository, ['modules/libs/one'])
    const inner = `${own}/modules/libs/one`
    // Its `core.worktree` is relative to the place where the directory is mounted.
    const env = { GIT_DIR: inner, GIT_WORK_TREE: `${repository.top}/libs/one` }
    expect(tryGit(repository.top, ['rev-parse', 'HEAD'], { env }).stdout.trim()).toBe(id)
    expect(
      readSynced(syncedFile(`${repository.base}/synced`, '/modules/libs/one')).refs.get('refs/heads/main'),
    ).toBe(id)
  })

  test('runs the hooks of the host, and takes no sample', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    mkdirSync(`${repository.dir}/hooks`, { recursive: true })
    writeFileSync(`${repository.dir}/hooks/pre-commit`, '#!/bin/sh\necho refused by a hook >&2; exit 1\n')
    chmodSync(`${repository.dir}/hooks/pre-commit`, 0o755)
    writeFileSync(`${repository.dir}/hooks/pre-push.sample`, '')
    const own = copy(repository)
    expect(readdirSync(`${own}/hooks`)).toEqual(['pre-commit'])
    const env = { GIT_DIR: own, GIT_WORK_TREE: repository.top }
    expect(tryGit(repository.top, ['commit', '--allow-empty', '-m', 'x'], { env }).stderr).toContain('hook')
  })

  test('has a shallow history, a sparse checkout, a split index and excludes', () => {
    using origin = new TemporaryRepository()
    origin.commit('a/one')
    origin.commit('b/two')
    using repository = new TemporaryRepository()
    repository.git('fetch', '-q', '--depth=1', `file://${origin.top}`, 'main')
    repository.git('reset', '-q', '--hard', 'FETCH_HEAD')
    repository.git('sparse-checkout', 'set', 'a')
    repository.git('update-index', '--split-index')
    writeFileSync(`${repository.dir}/info/exclude`, 'ignored\n')
    repository.write('ignored', '')
    const own = copy(repository)
    expect(repository.with(own, 'status', '--porcelain')).toBe('')
    expect(repository.with(own, 'rev-list', '--count', 'HEAD')).toBe('1')
    expect(repository.with(own, 'sparse-checkout', 'list')).toBe('a')
    expect(repository.with(own, 'ls-files')).toBe('a/one\nb/two')
  })

  test('has settings that can be written, also where those of the host are read-only', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    chmodSync(`${repository.dir}/config`, 0o444)
    const own = copy(repository)
    expect(lstatSync(`${own}/config`).mode & 0o777).toBe(0o600)
  })

  test('starts no monitor of the host, and does not repack', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    repository.git('config', 'core.fsmonitor', `${repository.base}/monitor`)
    const own = copy(repository)
    expect(repository.with(own, 'config', 'core.fsmonitor')).toBe('false')
    const { stdout } = tryGit(repository.top, ['config', '--file', `${own}/config`, 'gc.auto'])
    expect(stdout.trim()).toBe('0')
  })
})

describe('the copy of the index', () => {
  test('is never newer than the original, so that git looks at each file that changed in that second', () => {
    using repository = new TemporaryRepository()
    repository.commit('one', 'aaa')
    const own = copy(repository)
    const [a, b] = [lstatSync(`${repository.dir}/index`), lstatSync(`${own}/index`)]
    expect(b.mtimeMs).toBeLessThanOrEqual(a.mtimeMs)
    expect(b.mtimeMs).toBeGreaterThan(a.mtimeMs - 1001)
  })

  test('does not hide a change of the same size and time', () => {
    using repository = new TemporaryRepository()
    repository.commit('one', 'aaa')
    const time = lstatSync(`${repository.top}/one`).mtime
    utimesSync(`${repository.dir}/index`, time, time)
    repository.write('one', 'bbb')
    utimesSync(`${repository.top}/one`, time, time)
    expect(repository.with(copy(repository), 'status', '--porcelain')).toBe(' M one')
  })
})

describe('what stays behind', () => {
  test('is locks, sockets, pipes, alternates, packs, rerere, and the logs of branches', async () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    for (const name of ['index.lock', 'HEAD.lock', 'packed-refs.lock', 'gc.pid', 'info/x.lock'])
      writeFileSync(`${repository.dir}/${name}`, '')
    for (const name of ['MY_PIPE', 'info/pipe']) Bun.spawnSync(['mkfifo', `${repository.dir}/${name}`])
    mkdirSync(`${repository.dir}/rr-cache/x`, { recursive: true })
    const server = createServer().listen(`${repository.dir}/info/socket`)
    await new Promise(resolve => server.once('listening', resolve))
    createServer().listen(`${repository.dir}/fsmonitor--daemon.ipc`).unref()
    const own = copy(repository)
    server.close()
    const found = [...new Bun.Glob('**').scanSync({ cwd: own, dot: true, onlyFiles: false })]
    expect(found.filter(name => /lock|pid|PIPE|pipe|socket|ipc|rr-cache/.test(name))).toEqual([])
    expect(existsSync(`${own}/logs/refs/heads`)).toBe(false)
    expect(existsSync(`${own}/logs/HEAD`)).toBe(true)
  })

  test('is a log behind a link: it may lead to files that the sandbox must not read', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    mkdirSync(`${repository.base}/secrets`)
    writeFileSync(`${repository.base}/secrets/stash`, 'secret')
    rmSync(`${repository.dir}/logs/refs`, { recursive: true })
    symlinkSync(`${repository.base}/secrets`, `${repository.dir}/logs/refs`)
    const own = copy(repository)
    expect([existsSync(`${own}/logs/refs/stash`), existsSync(`${own}/logs/HEAD`)]).toEqual([false, true])
  })

  test('is a setting of pen: a link from settings leads to a file of the user', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    const file = `${repository.base}/shared`
    renameSync(`${repository.dir}/config`, file)
    for (const name of ['config', 'config.worktree']) symlinkSync(file, `${repository.dir}/${name}`)
    const before = readFileSync(file, 'utf8')
    copy(repository)
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  test('is what a link leads to: the link itself is copied', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    writeFileSync(`${repository.base}/secret`, 'secret')
    symlinkSync(`${repository.base}/secret`, `${repository.dir}/info/linked`)
    symlinkSync(repository.base, `${repository.dir}/info/dir`)
    const own = copy(repository)
    expect(lstatSync(`${own}/info/linked`).isSymbolicLink()).toBe(true)
    expect(lstatSync(`${own}/info/dir`).isSymbolicLink()).toBe(true)
  })

  test('the settings of the host stay as they are, and the copy is for its owner alone', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    const before = readFileSync(`${repository.dir}/config`)
    const own = copy(repository)
    expect(readFileSync(`${repository.dir}/config`)).toEqual(before)
    expect(lstatSync(`${own}/refs`).mode & 0o777).toBe(0o700)
  })
})

describe('the record of what was copied', () => {
  test('has every ref and HEAD of each worktree', () => {
    using repository = new TemporaryRepository()
    const id = repository.commit('one')
    repository.git('branch', 'other')
    repository.git('worktree', 'add', '-q', '--detach', '../linked')
    copy(repository)
    const { refs, heads } = readSynced(`${repository.base}/synced`)
    expect(Object.fromEntries(refs)).toEqual({ 'refs/heads/main': id, 'refs/heads/other': id })
    expect(heads.get('.')).toMatchObject({ branch: 'refs/heads/main', commit: id })
    expect(heads.get('worktrees/linked')).toMatchObject({ branch: undefined, commit: id })
  })
})

test('an emptied entry keeps its directory, and removes what a hostile sandbox left, but follows no link', () => {
  using repository = new TemporaryRepository()
  const entry = `${repository.base}/entry`
  mkdirSync(`${entry}/dir/locked/deep`, { recursive: true })
  writeFileSync(`${entry}/synced`, '')
  writeFileSync(`${repository.base}/precious`, 'precious')
  symlinkSync(repository.base, `${entry}/dir/link`)
  writeFileSync(Buffer.from(`${entry}/dir/\xff`, 'latin1'), '')
  chmodSync(`${entry}/dir/locked`, 0)
  const { ino } = lstatSync(`${entry}/dir`)
  emptyEntry(entry)
  expect(readdirSync(entry)).toEqual(['dir'])
  expect(readdirSync(`${entry}/dir`)).toEqual([])
  expect(lstatSync(`${entry}/dir`).ino).toBe(ino)
  expect(readFileSync(`${repository.base}/precious`, 'utf8')).toBe('precious')
})

/** Two branches that change the same line. */
function conflict(): TemporaryRepository {
  const repository = new TemporaryRepository()
  repository.commit('file', 'base')
  repository.git('branch', 'other')
  repository.commit('file', 'mine')
  repository.git('switch', '-q', 'other')
  repository.commit('file', 'theirs')
  repository.git('switch', '-q', 'main')
  return repository
}

test('a copy that stops halfway has no list of refs, so the next start makes it again', () => {
  using repository = new TemporaryRepository()
  repository.commit('one')
  expect(() => copy(repository, ['modules/absent'])).toThrow()
  expect(readdirSync(repository.base).filter(name => name.startsWith('synced'))).toEqual([])
  copy(repository)
  expect(readSynced(`${repository.base}/synced`).refs.size).toBe(1)
})

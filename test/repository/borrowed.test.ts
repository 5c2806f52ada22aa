import { expect, test } from 'bun:test'
import { symlinkSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { TemporaryRepository } from '../temporary-repository.ts'
import { TwoRepositories } from './two-repositories.ts'

const DONE = { isComplete: true, hasFailed: false, lines: [] }

test.each(['lib', 'テスト'.repeat(10)])(
  'a submodule %s: its commits come over into its own repository, and the gitlink follows',
  async name => {
    using library = new TemporaryRepository()
    library.commit('lib')
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('submodule', '--quiet', 'add', library.top, name)
    two.host.git('commit', '-q', '-m', 'a submodule')
    two.start()
    const tree = `${two.host.top}/${name}`
    two.host.write(`${name}/two`, 'two')
    two.insideAt(`modules/${name}`, tree, 'add', 'two')
    two.insideAt(`modules/${name}`, tree, 'commit', '-q', '-m', 'in the submodule')
    const id = two.insideAt(`modules/${name}`, tree, 'rev-parse', 'HEAD')
    two.inside('update-index', '--cacheinfo', `160000,${id},${name}`)
    two.inside('commit', '-q', '-m', 'a newer submodule')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.at(name, 'rev-parse', 'HEAD')).toBe(id)
    expect(two.host.git('status', '--porcelain')).toBe('')
    two.host.at(name, 'fsck', '--strict')
  },
)

test('a submodule in which nothing changed is not looked at; one that changed is', async () => {
  using library = new TemporaryRepository()
  library.commit('lib')
  using two = new TwoRepositories()
  two.host.commit('one')
  two.host.git('submodule', '--quiet', 'add', library.top, 'lib')
  two.host.git('commit', '-q', '-m', 'a submodule')
  two.start()
  // git fails there, and no fingerprint tells that.
  writeFileSync(`${two.own}/modules/lib/commondir`, '/nonexistent\n')
  const id = two.commitInside('two')
  expect(await two.sync()).toEqual(DONE)
  expect(two.host.git('rev-parse', 'main')).toBe(id)
  writeFileSync(`${two.own}/modules/lib/HEAD`, 'ref: refs/heads/other\n')
  expect((await two.sync()).hasFailed).toBe(true)
})

test.each(['directly', 'through a link', 'by a relative path'])(
  'objects that the host borrows %s are not copied',
  async how => {
    using library = new TemporaryRepository()
    library.commit('lib')
    using two = new TwoRepositories()
    two.host.git('pull', '-q', library.top, 'main')
    two.host.git('repack', '-q', '-a', '-d')
    const link = `${two.host.base}/link`
    symlinkSync(library.top, link)
    const top = how === 'directly' ? library.top : link
    const line = `${top}/.git/objects`
    const relative = posix.relative(`${two.host.dir}/objects`, line)
    await Bun.write(
      `${two.host.dir}/objects/info/alternates`,
      `${how === 'by a relative path' ? relative : line}\n`,
    )
    two.host.git('repack', '-q', '-a', '-d', '-l')
    two.start()
    two.commitInside('two')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('count-objects')).toStartWith('3 objects')
    two.host.git('fsck', '--strict')
  },
)

test('settings that were changed inside are named, also those of the worktree', async () => {
  using two = new TwoRepositories()
  two.host.commit('one')
  two.host.git('config', 'extensions.worktreeConfig', 'true')
  two.start()
  two.inside('config', 'user.nick', 'shared')
  two.inside('config', '--worktree', 'user.nick', 'own')
  const { lines } = await two.sync()
  expect(lines.join()).toContain('stay in it: user.nick=shared, user.nick=own;')
})

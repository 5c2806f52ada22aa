/** A history that is cut off on one side: on the host, as in many CI checkouts, or in the sandbox. */
import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { TemporaryRepository, tryGit } from '../temporary-repository.ts'
import { branch, entry, put, started } from './evil-objects.ts'
import { TwoRepositories } from './two-repositories.ts'

function upstream(): TemporaryRepository {
  const repository = new TemporaryRepository()
  for (const [i, file] of ['one', 'two', 'three'].entries()) {
    repository.commit(file)
    repository.git('tag', `v${i}`)
  }
  return repository
}

/** A clone with one commit of three. */
function shallow(from: TemporaryRepository): TwoRepositories {
  const two = new TwoRepositories()
  rmSync(two.host.dir, { recursive: true })
  two.host.git('clone', '-q', '--depth', '1', '--no-tags', '--bare', `file://${from.top}`, '.git')
  two.host.git('config', 'core.bare', 'false')
  two.host.git('reset', '-q', '--hard')
  return two.start()
}

describe('history that the sandbox fetched', () => {
  test('before the first commit of the host comes over with a tag, and the host stays shallow', async () => {
    using from = upstream()
    using two = shallow(from)
    two.inside('fetch', '-q', '--unshallow', '--tags', `file://${from.top}`)
    const id = two.commitInside('four')
    expect(await two.sync()).toEqual({ isComplete: true, hasFailed: false, lines: [] })
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    expect(two.host.git('log', '--format=%s', 'v1')).toBe('two two\none one')
    expect(two.host.git('show', 'v1:two')).toBe('two')
    expect(two.host.git('rev-list', '--count', 'main')).toBe('2')
    expect(tryGit(two.host.top, ['fsck', '--strict'])).toMatchObject({ code: 0 })
  })

  test('in part stays inside, with the command that gets the rest; other branches come over', async () => {
    using from = upstream()
    using two = started()
    two.inside('fetch', '-q', '--no-tags', '--depth', '1', `file://${from.top}`, 'main:pull')
    const id = two.commitInside('four')
    const { isComplete, lines } = await two.sync()
    expect([isComplete, lines.length, lines.join()]).toEqual([
      false,
      1,
      expect.stringMatching(/pull stays in the sandbox: .*; fix: .*git fetch --unshallow/),
    ])
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    expect(two.host.git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
    two.inside('fetch', '-q', '--no-tags', '--unshallow', `file://${from.top}`, 'main:pull')
    expect(await two.sync()).toEqual({ isComplete: true, hasFailed: false, lines: [] })
    expect(two.host.git('rev-parse', 'pull')).toBe(from.git('rev-parse', 'main'))
  })
})

test('of many refs, the one with an evil tree stays inside', async () => {
  using two = started()
  for (let i = 0; i < 5; i++) {
    two.inside('switch', '-q', '-c', `topic${i}`)
    two.commitInside(`file${i}`)
  }
  branch(two, put(two, 'tree', entry('160001', 'lib', put(two, 'blob', 'x'))))
  const { isComplete, lines } = await two.sync()
  expect([isComplete, lines.length]).toEqual([false, 1])
  expect(two.host.git('branch', '--list', 'topic*').split('\n')).toHaveLength(5)
  expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/topic4')
})

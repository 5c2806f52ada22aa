import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { OwnRepository } from '../../src/repository/own-repository.ts'
import { until } from '../until.ts'
import { TwoRepositories } from './two-repositories.ts'

describe("the sandbox's repository during a run", () => {
  test('a commit is on the host soon, and at the end nothing is left of the copy', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    const id = two.commitInside('two')
    await until(() => two.host.git('rev-parse', 'main') === id)
    expect(await own.finish()).toEqual([])
    expect(existsSync(`${two.entry}/synced`)).toBe(false)
    expect(readdirSync(two.own)).toEqual([])
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })

  test('commits that are made while a sync runs are on the host at the end', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    const made: string[] = []
    for (let i = 0; i < 6; i++) {
      made.push(two.commitInside(`file${i}`))
      await Bun.sleep(150)
    }
    expect(await own.finish()).toEqual([])
    expect(two.host.git('rev-parse', 'main')).toBe(made.at(-1) ?? '')
    for (const id of made) expect(two.isReachableOnHost(id)).toBe(true)
  })

  test('a commit that is made just before the end is on the host, however long a sync takes', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    const first = two.commitInside('first')
    await until(() => two.host.git('rev-parse', 'main') === first)
    // The sync that moved the branch is not over yet: it still reads the sandbox's repository.
    const last = two.commitInside('last')
    await Bun.sleep(350)
    await own.finish()
    expect(two.host.git('rev-parse', 'main')).toBe(last)
  })

  test('commits of a run that was killed are on the host when the next one starts', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    ;(await OwnRepository.open(two.options, 'run')).close()
    const id = two.commitInside('two')
    const next = await OwnRepository.open(two.options, 'other')
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    await next.finish()
  })

  test('a staged file survives the end of a run', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    two.host.write('staged', 'x')
    two.inside('add', 'staged')
    expect((await own.finish()).join()).toContain('staged')
    const next = await OwnRepository.open(two.options, 'next')
    expect(two.inside('diff', '--cached', '--name-only')).toBe('staged')
    await next.finish()
  })

  test('a directory that was kept, and whose commits the user pruned, does not break the next runs', async () => {
    using two = new TwoRepositories()
    const first = two.host.commit('one')
    two.host.commit('two')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    two.host.write('staged', 'x')
    two.inside('add', 'staged')
    await own.finish()
    two.host.git('reset', '-q', '--hard', 'HEAD~1')
    two.host.git('reflog', 'expire', '--expire=now', '--all')
    two.host.git('gc', '-q', '--prune=now')
    const next = await OwnRepository.open(two.options, 'next')
    expect(two.inside('rev-parse', 'HEAD^{commit}')).toBe(first)
    expect((await next.finish()).join()).toContain('commits that the host has no more')
  })

  test('commits that the user drops and collects as garbage during a run still work inside', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('branch', 'dropped')
    two.host.git('switch', '-q', 'dropped')
    const id = two.host.commit('two')
    two.host.git('switch', '-q', 'main')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    await until(() => two.host.git('for-each-ref', 'refs/pen') !== '')
    two.host.git('branch', '-q', '-D', 'dropped')
    two.host.git('reflog', 'expire', '--expire=now', 'HEAD', 'main')
    two.host.git('gc', '-q', '--prune=now')
    expect(two.inside('cat-file', '-t', id)).toBe('commit')
    await own.finish()
    // `git gc` packed the ref that kept it.
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })
})

/** What either side does while a sync runs. Each test acts at a known point of it: while the plan is made, or just before it is carried out. */
import { describe, expect, test } from 'bun:test'
import { copyFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { HostPath } from '../../src/policy/files/path.ts'
import { type SyncResult, syncAll } from '../../src/repository/sync-all.ts'
import { SANDBOX, TwoRepositories } from './two-repositories.ts'

const DONE = { isComplete: true, hasFailed: false, lines: [] }

function started(): TwoRepositories {
  const two = new TwoRepositories()
  for (const file of ['one', 'two', 'three']) two.host.commit(file)
  two.host.git('branch', 'other', 'main~1')
  return two.start()
}

type When = 'planning' | 'applying'

/** pen asks for the paths of new commits while it plans, and records each ref before it moves. */
async function syncWhile(two: TwoRepositories, when: When, act: () => void): Promise<SyncResult> {
  let isDone = false
  const once = (now: When): void => {
    if (now !== when || isDone) return
    isDone = true
    act()
  }
  const result = await syncAll({
    ...two.options,
    entry: two.entry,
    dir: two.own as HostPath,
    mayWrite: () => {
      once('planning')
      return true
    },
    record: () => once('applying'),
  })
  expect(isDone).toBe(true)
  return result
}

const hostHead = (two: TwoRepositories): string =>
  `${two.host.git('rev-parse', '--symbolic-full-name', 'HEAD')} ${two.host.git('rev-parse', 'HEAD')}`

const staged = (two: TwoRepositories): string => two.host.git('diff', '--cached', '--name-only')

describe.each(['planning', 'applying'] as const)('during a sync (%s)', when => {
  test('a commit that is amended inside comes over with the next sync, and is no conflict', async () => {
    using two = started()
    two.commitInside('four')
    await syncWhile(two, when, () => void two.inside('commit', '-q', '--amend', '-m', 'amended'))
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('rev-parse', 'main')).toBe(two.inside('rev-parse', 'main'))
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })

  test('a switch inside reaches HEAD and index of the host with the next sync', async () => {
    using two = started()
    two.commitInside('four')
    await syncWhile(two, when, () => {
      two.inside('switch', '-q', '-c', 'next')
      two.commitInside('five')
    })
    expect(staged(two)).toBe('')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/next')
    expect(two.host.git('status', '--porcelain')).toBe('')
  })

  test('HEAD of the host stays where the user detaches it, with the commits that the user makes', async () => {
    using two = started()
    two.inside('switch', '-q', '-c', 'agent')
    two.commitInside('four')
    let [before] = ['']
    await syncWhile(two, when, () => {
      two.host.git('checkout', '-q', '--detach')
      two.host.git('commit', '-q', '--allow-empty', '-m', 'mine')
      before = hostHead(two)
    })
    expect(hostHead(two)).toBe(before)
    expect(staged(two)).toBe('')
    expect(two.host.git('rev-parse', 'agent')).toBe(two.inside('rev-parse', 'agent'))
  })

  test('HEAD of the host stays where a rebase stops, and follows when it has ended', async () => {
    using two = started()
    two.inside('switch', '-q', '-c', 'agent')
    two.commitInside('four')
    let [before] = ['']
    await syncWhile(two, when, () => {
      two.host.git('-c', 'sequence.editor=sed -i 1ibreak', 'rebase', '-q', '-i', 'main~1')
      before = hostHead(two)
    })
    expect(hostHead(two)).toBe(before)
    expect(staged(two)).toBe('')
    two.host.git('rebase', '--abort')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/agent')
  })

  test('nothing is staged on a branch to which the user switches', async () => {
    using two = started()
    two.commitInside('four')
    await syncWhile(two, when, () => void two.host.git('switch', '-q', 'other'))
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/other')
    expect(staged(two)).toBe('')
  })

  test('HEAD inside stays where the sandbox detaches it, although the user switches', async () => {
    using two = started()
    two.host.git('switch', '-q', 'other')
    const id = two.inside('commit-tree', '-p', 'main', '-m', 'x', 'main~1^{tree}')
    two.inside('update-ref', 'refs/heads/brought', id)
    await syncWhile(two, when, () => {
      two.inside('checkout', '-q', '-f', '--detach', 'main')
      two.commitInside('four')
    })
    expect(two.tryInside(['symbolic-ref', '-q', 'HEAD']).code).toBe(1)
    expect(two.inside('log', '-1', '--format=%s')).toBe('inside four')
    expect(two.inside('diff', '--cached', '--name-only')).toBe('')
  })
})

test('a branch that the host has checked out moves with its index, also where HEAD cannot follow', async () => {
  using two = started()
  const id = two.commitInside('four')
  two.inside('switch', '-q', '-c', 'deadbeef')
  expect((await two.sync()).lines.join()).toContain('deadbeef')
  expect(two.host.git('rev-parse', 'main')).toBe(id)
  expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
  expect(two.host.git('status', '--porcelain')).toBe('')
})

test('what a sync applied before it was killed is agreed', async () => {
  using two = started()
  const [from, four] = [two.host.git('rev-parse', 'main'), two.commitInside('four')]
  two.inside('switch', '-q', '-c', 'next')
  copyFileSync(`${two.entry}/synced`, `${two.entry}/before`)
  await two.sync()
  copyFileSync(`${two.entry}/before`, `${two.entry}/synced`)
  const head = { branch: 'refs/heads/next', commit: four, isBusy: false, isOpen: false }
  const refs = [
    { name: 'refs/heads/main', old: from, new: four },
    { name: 'refs/heads/next', new: four },
  ]
  const moves = { refs, worktrees: [{ record: '.', from: {}, head }] }
  writeFileSync(`${two.entry}/synced.moving`, JSON.stringify(moves))
  two.inside('commit', '-q', '--amend', '-m', 'amended')
  two.inside('switch', '-q', '-c', 'third')
  expect(await two.sync()).toEqual(DONE)
  expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/third')
  expect(two.host.git('rev-parse', 'next')).toBe(two.inside('rev-parse', 'next'))
  expect(two.host.git('for-each-ref', `refs/pen/${SANDBOX}`)).toBe('')
})

test('a commit of the user just after a branch moved has what the user staged, and undoes nothing', async () => {
  using two = new TwoRepositories()
  for (let i = 0; i < 2000; i++) two.host.write(`many/${i}`, `${i}`)
  two.host.git('add', '.')
  two.host.git('commit', '-q', '-m', 'many')
  two.start()
  const old = two.host.git('rev-parse', 'main')
  two.host.write('mine', 'mine')
  two.host.git('add', 'mine')
  const script = `i=0; while [ $i -lt 10000 ] && [ "$(git rev-parse main)" = ${old} ]; do i=$((i + 1)); done
    i=0; until git -c user.name=a -c user.email=a@b.test commit -q -m mine; do i=$((i + 1)); [ $i -lt 100 ] || exit 1; done`
  const user = Bun.spawn(['sh', '-c', script], { cwd: two.host.top, stderr: 'ignore' })
  const [branch, index] = [`${two.host.dir}/refs/heads/main`, `${two.host.dir}/index`]
  const looks = `const { readFileSync, statSync } = require('node:fs')
    const end = Date.now() + 20000
    while (readFileSync('${branch}', 'utf8') === '${old}\\n' && Date.now() < end);
    process.exit(statSync('${index}').ino === ${statSync(index).ino} ? 3 : 0)`
  const onlooker = Bun.spawn([process.execPath, '-e', looks])
  two.commitInside('many/7', 'changed')
  await two.sync()
  expect([await onlooker.exited, await user.exited]).toEqual([0, 0])
  expect(two.host.git('log', '--format=%s', '--name-status', '-2')).toBe(
    'mine\n\nA\tmine\ninside many/7\n\nM\tmany/7',
  )
})

test('a branch waits with its index when the user locks the index just before both move', async () => {
  using two = started()
  const lock = `${two.host.dir}/index.lock`
  const before = two.host.git('rev-parse', 'main')
  const id = two.commitInside('four')
  const { isComplete, hasFailed } = await syncWhile(two, 'applying', () => writeFileSync(lock, ''))
  expect([isComplete, hasFailed, two.host.git('rev-parse', 'main')]).toEqual([false, false, before])
  two.inside('branch', 'another')
  expect((await two.sync()).isComplete).toBe(false)
  rmSync(lock)
  expect(await two.sync()).toEqual(DONE)
  expect(two.host.git('rev-parse', 'main', 'another')).toBe(`${id}\n${id}`)
  expect(two.host.git('status', '--porcelain')).toBe('')
})

test('an index that a killed sync left behind follows when its lock is gone, also many syncs later', async () => {
  using two = started()
  const lock = `${two.host.dir}/index.lock`
  const old = two.host.git('rev-parse', 'main')
  const id = two.commitInside('four')
  await two.sync()
  two.host.git('read-tree', old)
  const move = { record: '.', from: { branch: 'refs/heads/main', commit: old }, index: { old, new: id } }
  writeFileSync(`${two.entry}/synced.moving`, JSON.stringify({ refs: [], worktrees: [move] }))
  writeFileSync(lock, '')
  two.inside('branch', 'another')
  for (let i = 0; i < 2; i++) await two.sync()
  expect(two.host.git('diff', '--cached', '--name-only')).toBe('four')
  rmSync(lock)
  expect(await two.sync()).toEqual(DONE)
  expect(two.host.git('status', '--porcelain')).toBe('')
})

test('commits come over after a sync that was killed before its first move, and whose objects are gone', async () => {
  using two = started()
  const [old, gone] = [two.host.git('rev-parse', 'main'), 'd'.repeat(40)]
  const moves = {
    refs: [{ name: 'refs/heads/main', old, new: gone }],
    worktrees: [{ record: '.', from: { branch: 'refs/heads/main' }, index: { old, new: gone } }],
  }
  writeFileSync(`${two.entry}/synced.moving`, JSON.stringify(moves))
  const id = two.commitInside('four')
  expect(await two.sync()).toEqual(DONE)
  expect(two.host.git('rev-parse', 'main')).toBe(id)
  expect(two.host.git('status', '--porcelain')).toBe('')
})

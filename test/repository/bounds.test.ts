import { expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isHostRoot } from '../../src/base/kernel/host-root.ts'
import type { HostPath } from '../../src/policy/files/path.ts'
import { GitBox } from '../../src/repository/git/git-box.ts'
import { HostGit } from '../../src/repository/git/host-git.ts'
import { Budget } from '../../src/repository/sync/budget.ts'
import { readState } from '../../src/repository/sync/state.ts'
import { budgetFile, syncAll } from '../../src/repository/sync-all.ts'
import { onlyWhen } from '../skip.ts'
import { started } from './evil-objects.ts'

test('a run brings a limited number of new refs; the rest stays inside until pen git import', async () => {
  using two = started()
  writeFileSync(budgetFile(two.entry), JSON.stringify({ refs: 4993, objects: 0, bytes: 0 }))
  for (let i = 0; i < 12; i++) two.inside('branch', `b${i}`)
  const count = (): number => two.host.git('for-each-ref', 'refs/heads').split('\n').length
  const { isComplete, lines } = await two.sync()
  expect([isComplete, count()]).toEqual([false, 1 + 7])
  expect(lines.join()).toContain(
    '5 new refs stay in the sandbox for now; to get more of them: pen git import',
  )
  const id = two.commitInside('two')
  await two.sync()
  expect([two.host.git('rev-parse', 'main'), count()]).toEqual([id, 1 + 7])
  // As the command does.
  Budget.forget(budgetFile(two.entry))
  await two.sync()
  expect(count()).toBe(1 + 12)
})

test('refs that are put aside count as well, so a sandbox cannot fill the host with them', async () => {
  using two = started()
  writeFileSync(budgetFile(two.entry), JSON.stringify({ refs: 4999, objects: 0, bytes: 0 }))
  two.host.git('commit', '-q', '--allow-empty', '-m', 'host')
  for (let i = 0; i < 3; i++) {
    two.inside('commit', '-q', '--allow-empty', '--amend', '-m', `inside ${i}`)
    await two.sync()
  }
  expect(two.host.git('for-each-ref', '--format=%(refname)', 'refs/pen').split('\n')).toHaveLength(1)
})

test('stashes count as well; the rest stays inside', async () => {
  using two = started()
  writeFileSync(budgetFile(two.entry), JSON.stringify({ refs: 4998, objects: 0, bytes: 0 }))
  for (let i = 0; i < 5; i++) {
    two.host.write('one', `change ${i}`)
    two.inside('stash', '-q')
  }
  const { lines } = await two.sync()
  expect(two.host.git('stash', 'list').split('\n')).toHaveLength(2)
  expect(lines.join()).toContain('3 new refs stay in the sandbox for now')
  Budget.forget(budgetFile(two.entry))
  await two.sync()
  expect(two.host.git('stash', 'list').split('\n')).toHaveLength(5)
})

test("after the time of a sync, the host's git starts no command", async () => {
  using two = started()
  const script = 'git update-ref refs/heads/late HEAD'
  using late = new HostGit(two.host.dir, `${two.entry}/empty`, Date.now() - 1)
  expect(await late.run({ script })).toMatchObject({ code: 137, stderr: 'the sync takes too long' })
  expect(two.host.git('branch', '--list', 'late')).toBe('')
  using early = new HostGit(two.host.dir, `${two.entry}/empty`, Date.now() + 60_000)
  expect((await early.run({ script })).code).toBe(0)
})

test('a git-lfs object that is longer than the disk of the sandbox is not copied', async () => {
  using two = started()
  const bytes = Buffer.alloc(2 * 1024 ** 2)
  const id = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  const place = `lfs/objects/${id.slice(0, 2)}/${id.slice(2, 4)}`
  mkdirSync(`${two.own}/${place}`, { recursive: true })
  writeFileSync(`${two.own}/${place}/${id}`, bytes)
  const { world } = two.options
  const limits = { ...world.limits, disk: 1024 ** 2 } as typeof world.limits
  const commit = two.commitInside('small')
  const options = { ...two.options, entry: two.entry, dir: two.own as HostPath }
  expect((await syncAll({ ...options, world: { ...world, limits } })).lines.join()).toContain(
    'another content',
  )
  expect(existsSync(`${two.host.dir}/lfs`)).toBe(false)
  // The commits come over all the same.
  expect(two.host.git('rev-parse', 'main')).toBe(commit)
  await two.sync()
  expect(readFileSync(`${two.host.dir}/${place}/${id}`)).toEqual(bytes)
})

onlyWhen(isHostRoot())('an import that fails on a full disk leaves nothing, and succeeds later', async () => {
  using two = started()
  const objects = `${two.host.dir}/objects`
  const mount = (...args: readonly string[]): void => {
    expect(Bun.spawnSync(['mount', ...args, objects]).exitCode).toBe(0)
  }
  cpSync(objects, `${two.host.base}/objects`, { recursive: true })
  mount('-t', 'tmpfs', '-o', 'size=1m', 'tmpfs')
  try {
    cpSync(`${two.host.base}/objects`, objects, { recursive: true })
    for (let i = 0; i < 120; i++)
      writeFileSync(`${two.host.top}/f${i}`, crypto.getRandomValues(Buffer.alloc(20_000)))
    two.inside('add', '.')
    two.inside('commit', '-q', '-m', 'large')
    const before = two.listing()
    const { hasFailed, lines } = await two.sync()
    expect([hasFailed, lines.join()]).toEqual([
      true,
      expect.stringContaining(`no space left on the disk of ${objects}`),
    ])
    expect(two.listing()).toEqual(before)
    mount('-o', 'remount,size=20m')
    expect(await two.sync()).toMatchObject({ isComplete: true })
    two.host.git('fsck', '--strict')
    expect([...two.listing().keys()].filter(path => path.includes('tmp_'))).toEqual([])
  } finally {
    Bun.spawnSync(['umount', objects])
  }
})

test('a run brings a limited number of bytes; over it, nothing comes and nothing is lost', async () => {
  using two = started()
  const before = two.listing()
  writeFileSync(budgetFile(two.entry), JSON.stringify({ refs: 0, objects: 0, bytes: 4 * 1024 ** 3 - 10 }))
  const id = two.commitInside('two')
  const { isComplete, lines } = await two.sync()
  expect(isComplete).toBe(false)
  expect(lines.join()).toContain('one run may bring 4GiB, and this would be more')
  expect(lines.join()).toContain('pen git import tries again')
  expect(two.listing()).toEqual(before)
  Budget.forget(budgetFile(two.entry))
  await two.sync()
  expect(two.host.git('rev-parse', 'main')).toBe(id)
})

test('a named pipe in place of HEAD cannot hold a sync for longer than its time', async () => {
  using two = started()
  rmSync(`${two.own}/HEAD`)
  Bun.spawnSync(['mkfifo', `${two.own}/HEAD`])
  const { world, git } = two.options
  const box = new GitBox(world, git, two.own as HostPath, Date.now() + 1500)
  const began = performance.now()
  const read = (): Promise<string> =>
    readState(box.run).then(
      () => 'read',
      (error: Error) => error.message,
    )
  expect([await read(), await read()].join()).toContain('too long')
  expect(performance.now() - began).toBeLessThan(10_000)
  // pen looks first, so it waits only for one that is made meanwhile.
  const open = new GitBox(world, git, two.own as HostPath)
  await expect(readState(open.run, undefined, 'all')).rejects.toThrow('the git directory has a named pipe')
})

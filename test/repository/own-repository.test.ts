import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { isHostRoot } from '../../src/base/kernel/host-root.ts'
import { tryLock } from '../../src/config/lock.ts'
import type { HostPath } from '../../src/policy/files/path.ts'
import { OwnRepository } from '../../src/repository/own-repository.ts'
import { pendingIn } from '../../src/repository/pending.ts'
import { until } from '../until.ts'
import { SANDBOX, TwoRepositories } from './two-repositories.ts'

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
    expect(existsSync(two.entry)).toBe(false)
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })

  test('what a run left that was killed while it copied is gone after the next start; other directories stay', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const top = dirname(two.entry)
    const [killed, busy, adopted] = ['0000a1', '0000a2', '0000a3'].map(n => `20260102-030405-${n}`)
    for (const name of [killed, busy, adopted]) mkdirSync(`${top}/${name}/dir/refs`, { recursive: true })
    writeFileSync(`${top}/${adopted}/adopted`, '')
    const lock = tryLock(`${top}/${busy}.lock`)
    const own = await OwnRepository.open(two.options, 'run')
    own.close()
    lock?.release()
    expect(readdirSync(top).sort()).toEqual([`${busy}`, `${adopted}`, 'run'])
  })

  test('a commit is on the host soon after git gave back its lock of the index, without another change', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    const id = two.commitInside('two')
    writeFileSync(`${own.dir}/index.lock`, '')
    own.watch(() => undefined)
    await Bun.sleep(1500)
    expect(two.host.git('rev-parse', 'main')).not.toBe(id)
    rmSync(`${own.dir}/index.lock`)
    await until(() => two.host.git('rev-parse', 'main') === id)
    expect(await own.finish()).toEqual([])
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

  test('commits of a tool that writes into the file of a ref are on the host, as are those of the host inside', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const commit = (git: (...args: string[]) => string): string =>
      git('commit-tree', '-p', 'main', '-m', 'in place', 'main^{tree}')
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    const first = two.commitInside('two')
    await until(() => two.host.git('rev-parse', 'main') === first)
    await Bun.sleep(1000)
    const id = commit((...args) => two.inside(...args))
    writeFileSync(`${two.own}/refs/heads/main`, `${id}\n`)
    await own.finish()
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    await (await OwnRepository.open(two.options, 'run')).finish()
    const next = commit((...args) => two.host.git(...args))
    writeFileSync(`${two.host.dir}/refs/heads/main`, `${next}\n`)
    const last = await OwnRepository.open(two.options, 'run')
    expect(two.inside('rev-parse', 'main')).toBe(next)
    await last.finish()
  })

  test('data of another tool is named and kept for the next run, also when nothing else changed', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('config', 'core.sharedRepository', 'group')
    two.start()
    await (await OwnRepository.open(two.options, 'run')).finish()
    const first = await OwnRepository.open(two.options, 'run')
    mkdirSync(`${two.own}/annex/objects`, { recursive: true })
    writeFileSync(`${two.own}/annex/objects/key`, 'precious')
    expect(await first.finish()).toEqual([])
    two.host.commit('two')
    const second = await OwnRepository.open(two.options, 'run')
    expect(readFileSync(`${second.dir}/annex/objects/key`, 'utf8')).toBe('precious')
    two.commitInside('three')
    const lines = await second.finish()
    expect(lines).toEqual([
      expect.stringContaining(`git: annex is of another tool than git and does not cross`),
    ])
    expect(two.host.git('log', '-1', '--format=%s')).toBe('inside three')
    expect(readFileSync(`${second.dir}/annex/objects/key`, 'utf8')).toBe('precious')
    expect(two.inside('config', 'core.sharedRepository')).toBe('umask')
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

  test('the pin of a run that was killed is gone after the next one, however short it is', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    await until(() => two.host.git('for-each-ref', 'refs/pen') !== '')
    own.close()
    const next = await OwnRepository.open(two.options, 'other')
    await next.finish()
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })

  test('a stash of the start stays whole inside when the user drops it, also after git gc', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.write('one', 'changed')
    two.host.git('stash', '-q')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    await until(() => two.host.git('for-each-ref', 'refs/pen') !== '')
    two.host.git('stash', 'drop', '-q')
    two.host.git('gc', '-q', '--prune=now')
    expect(two.inside('stash', 'show', '--name-only')).toBe('one')
    await own.finish()
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })

  test('a link of the owner in the place of a pin does not make root write where it leads', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    const [victim, log] = [`${two.host.base}/victim`, `${two.host.base}/victim-log`]
    for (const path of [victim, log]) writeFileSync(path, 'mine', { mode: 0o600 })
    const start = `refs/pen/${SANDBOX}/start`
    for (const [dir, target] of [
      [start, victim],
      [`logs/${start}`, log],
    ] as const) {
      mkdirSync(`${two.host.dir}/${dir}`, { recursive: true })
      symlinkSync(target, `${two.host.dir}/${dir}/run`)
    }
    if (isHostRoot()) {
      chmodSync(two.host.base, 0o755)
      Bun.spawnSync(['chown', '-hR', '65534:65534', two.host.top])
    }
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    await Bun.sleep(1200)
    await own.finish()
    expect(readFileSync(victim, 'utf8')).toBe('mine')
    // An ordinary user owns both.
    if (isHostRoot()) expect(readFileSync(log, 'utf8')).toBe('mine')
  })

  test('the newest damaged directory with something in it is kept, and does not become the directory of a run', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    using elsewhere = new TwoRepositories()
    const state = `${two.host.base}/state/git`
    const lines: string[] = []
    // In the last one there is nothing new.
    for (const name of ['a', 'b', 'c', '']) {
      const own = await OwnRepository.open(two.options, name === '' ? 'd' : name)
      expect(own.dir).toBe(two.own as HostPath)
      if (name !== '') two.commitInside(name)
      // A hostile sandbox: its directory looks like one of pen's own, which leads to another repository.
      writeFileSync(`${two.own}/synced`, '')
      symlinkSync(elsewhere.host.dir, `${two.own}/dir`)
      rmSync(`${two.own}/HEAD`)
      lines.push(...(await own.finish()).filter(line => line.includes('new copy')))
    }
    const last = await OwnRepository.open(two.options, 'e')
    lines.push(...(await last.finish()))
    const kept = readdirSync(state).filter(name => name.startsWith('run.damaged-'))
    expect(kept.map(name => readFileSync(`${state}/${name}/git/COMMIT_EDITMSG`, 'utf8'))).toEqual([
      'inside c\n',
    ])
    const ends = lines.map(line => line.replace(/^.*; /, ''))
    expect(ends).toEqual([
      expect.stringMatching(/^what is left of the old one is in .*\/git$/),
      `what is left of the old one is in ${state}/${ends[1]?.match(/run\.damaged-\w+/)}/git, in place of an older one`,
      `what is left of the old one is in ${state}/${kept[0]}/git, in place of an older one`,
      'the old one had nothing that the host does not have',
    ])
    // What is on the host already is nothing of its own.
    const next = await OwnRepository.open(two.options, 'f')
    two.commitInside('synced')
    two.host.write('staged', 'kept')
    two.inside('add', 'staged')
    await next.finish()
    two.host.git('hash-object', '-w', 'staged')
    expect(two.host.git('log', '-1', '--format=%s')).toBe('inside synced')
    rmSync(`${two.own}/HEAD`)
    const after = await (await OwnRepository.open(two.options, 'g')).finish()
    expect(after.join()).toContain('the old one had nothing')
    expect(readdirSync(state)).toContain(kept[0] ?? '')
  })

  test.each([
    ['commondir leads away', 'echo /etc >commondir'],
    ['a format that git does not know', 'git config -f config core.repositoryformatversion 99'],
    ['settings without end', 'git config -f config include.path /dev/zero'],
    ['a named pipe as index', 'rm index; mkfifo index'],
  ])(
    'a directory that git cannot read does not spoil the next run: %s',
    async (_what, damage) => {
      using two = new TwoRepositories()
      const first = two.host.commit('one')
      two.start()
      ;(await OwnRepository.open(two.options, 'run')).close()
      Bun.spawnSync(['sh', '-c', damage], { cwd: two.own })
      const next = await OwnRepository.open(two.options, 'other')
      expect(two.inside('rev-parse', 'HEAD')).toBe(first)
      expect(two.inside('status', '--porcelain')).toBe('')
      expect((await next.finish()).join()).toContain('could not be read, and this run got a new copy')
    },
    60_000,
  )

  test('a repository that the user made again at the same place does not spoil the next run', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.git('branch', 'old')
    two.start()
    ;(await OwnRepository.open(two.options, 'run')).close()
    // Its tip is inside, and not what is below it.
    two.commitInside('two')
    rmSync(two.host.dir, { recursive: true })
    two.host.git('init', '-q')
    const first = two.host.commit('new')
    const next = await OwnRepository.open(two.survey(), 'other')
    expect(two.inside('rev-parse', 'HEAD')).toBe(first)
    expect((await next.finish()).join()).toContain('commits that the host has no more')
  })

  test('while it runs, what is not on the host yet is listed: staged files, then nothing', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    own.watch(() => undefined)
    expect(own.pending()).toEqual([])
    two.host.write('staged', 'x')
    two.inside('add', 'staged')
    await until(() => own.pending().join().includes('staged files stay staged'))
    two.inside('commit', '-q', '-m', 'two')
    await until(() => own.pending().length === 0)
    expect(two.host.git('log', '-1', '--format=%s')).toBe('two')
    await own.finish()
  })

  test('a .git that the user empties during a run: a plain line, and the commits are kept', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    for (const name of readdirSync(two.host.dir))
      if (name !== 'objects') rmSync(`${two.host.dir}/${name}`, { recursive: true })
    writeFileSync(`${two.own}/refs/heads/new`, `${two.inside('rev-parse', 'main')}\n`)
    const [line = ''] = await own.finish()
    expect(line).toBe(
      `git: ${two.host.dir} is no repository any more: nothing was taken over from the sandbox; its repository is kept at ${two.own}`,
    )
    expect(existsSync(`${two.own}/refs/heads/new`)).toBe(true)
    expect(readdirSync(two.host.dir)).toEqual(['objects'])
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

  test('commits of a detached worktree that was made inside survive changes on the host, and are listed', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    const tree = `${two.host.top}/made`
    two.inside('worktree', 'add', '-q', '--detach', tree)
    const id = two.insideAt('worktrees/made', tree, 'commit-tree', '-p', 'HEAD', '-m', 'x', 'HEAD^{tree}')
    two.insideAt('worktrees/made', tree, 'update-ref', '--no-deref', 'HEAD', id)
    expect((await own.finish()).join()).toContain('the worktree made')
    two.host.commit('two')
    const next = await OwnRepository.open(two.options, 'next')
    expect(two.insideAt('worktrees/made', tree, 'rev-parse', 'HEAD^{commit}')).toBe(id)
    const entries = { ...two.options, entry: two.entry, dir: next.dir }
    expect(await pendingIn(entries)).toEqual([
      { name: 'worktrees/made: HEAD', what: 'not on the host yet', commit: id },
    ])
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

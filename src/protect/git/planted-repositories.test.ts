import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import {
  describeRepository,
  type FoundRepository,
  findRepositories,
  searchBudget,
} from './planted-repositories.ts'

let ws = ''
beforeAll(() => {
  ws = realpathSync(mkdtempSync(join(tmpdir(), 'pen-planted-')))
})
afterAll(() => rmSync(ws, { recursive: true, force: true }))

function file(path: string, text = ''): void {
  mkdirSync(dirname(`${ws}/${path}`), { recursive: true })
  writeFileSync(`${ws}/${path}`, text)
}

function gitDir(path: string, config = '[core]\nbare = false\n'): void {
  for (const part of ['objects', 'refs']) mkdirSync(`${ws}/${path}/${part}`, { recursive: true })
  file(`${path}/HEAD`, 'ref: refs/heads/main\n')
  file(`${path}/config`, config)
}

const search = (since = 0, path = ''): readonly FoundRepository[] =>
  findRepositories(`${ws}${path}`, { deadlineMs: 5000, since }).found

describe('repositories below the root', () => {
  test('many plain repositories are listed up to a limit, and hide none that could run something', () => {
    for (let i = 0; i < 120; i++) gitDir(`crowd/a${i}/.git`)
    gitDir('crowd/zz/deep/.git', '[core]\nfsmonitor = evil\n')
    const found = search(0, '/crowd')
    expect(found.filter(({ risks }) => risks.length === 0).length).toBe(100)
    expect(found.filter(({ risks }) => risks.length > 0).map(({ path }) => path)).toEqual([
      `${ws}/crowd/zz/deep`,
    ])
    rmSync(`${ws}/crowd`, { recursive: true })
  })

  test('a tree too deep for a path leaves the search incomplete and goes on', () => {
    gitDir('hidden/seen/.git')
    // Deeper than a path can be, put together from two halves, as a sandbox would.
    const half = Array.from({ length: 18 }, () => 'd'.repeat(200)).join('/')
    mkdirSync(`${ws}/hidden/a/${half}`, { recursive: true })
    mkdirSync(`${ws}/hidden/b/${half}`, { recursive: true })
    renameSync(`${ws}/hidden/b`, `${ws}/hidden/a/${half}/b`)
    const deep = findRepositories(`${ws}/hidden`, { deadlineMs: 5000, since: 0 })
    expect([deep.complete, deep.found.length]).toEqual([false, 1])
    Bun.spawnSync(['rm', '-rf', `${ws}/hidden/a`])
    expect(findRepositories(`${ws}/hidden`, { deadlineMs: 5000, since: 0 }).complete).toBe(true)
  })
  test('P3 are found behind non-UTF-8 names, and behind names that only look like that', () => {
    const named = (bytes: string): Buffer => Buffer.from(`${ws}/nameless/${bytes}`, 'latin1')
    gitDir('nameless/a/.git', '[core]\nfsmonitor = ./evil\n')
    gitDir('nameless/b/c/.git', '[core]\nfsmonitor = ./evil\n')
    gitDir('nameless/d\ufffd/.git')
    renameSync(`${ws}/nameless/a`, named('r\xff'))
    renameSync(`${ws}/nameless/b/c`, named('b/\xfe'))
    renameSync(`${ws}/nameless/b`, named('s\xfd'))
    const found = search(0, '/nameless').map(({ path, risks }) => `${path.slice(ws.length + 10)} ${risks}`)
    expect(found.sort()).toEqual([
      'd\ufffd ',
      'r\ufffd core.fsmonitor=./evil',
      's\ufffd/\ufffd core.fsmonitor=./evil',
    ])
    file('nameless/e/.git', '')
    writeFileSync(`${ws}/nameless/e/.git`, Buffer.from('gitdir: ../r\xff/.git\n', 'latin1'))
    expect(search(0, '/nameless/e')).toEqual([])
    const pointer = search(0, '/nameless').find(({ path }) => path.endsWith('/e'))
    expect(pointer?.risks).toEqual(['its .git file is unreadable'])
    const descriptors = () => readdirSync('/proc/self/fd').length
    const before = descriptors()
    search(0, '/nameless')
    expect(descriptors()).toBe(before)
  })
  test('a worktree is judged by the directory that its record names, not by the one it should', () => {
    gitDir('lying/.git')
    gitDir('lying/evil', '[core]\nfsmonitor = ./evil\n')
    file('lying/.git/worktrees/w/commondir', '../../../evil\n')
    file('lying/w/.git', 'gitdir: ../.git/worktrees/w\n')
    const found = search(0, '/lying').find(({ path }) => path.endsWith('/w'))
    expect(found?.risks).toEqual(['core.fsmonitor=./evil'])
  })
  test('are found in every form, with what they could run', () => {
    gitDir('all/.git')
    gitDir('all/plain/.git')
    gitDir('all/deep/er/clone/.git', '[core]\nfsmonitor = ./evil\n')
    file('all/deep/er/clone/.git/hooks/pre-commit')
    file('all/deep/er/clone/.git/hooks/pre-push.sample')
    gitDir('all/data/store')
    file('all/sub/.git', 'gitdir: ../data/store\n')
    file('all/odd/.git', 'nonsense')
    mkdirSync(`${ws}/all/via`)
    symlinkSync('../plain/.git', `${ws}/all/via/.git`)
    const short = search(0, '/all').map(r => [r.path.slice(ws.length + 5), r.form, r.risks.join(' ')])
    expect(short.sort()).toEqual([
      ['data/store', 'bare', ''],
      ['deep/er/clone', 'directory', 'core.fsmonitor=./evil hooks/pre-commit'],
      ['odd', 'pointer', 'its .git file is unreadable'],
      ['plain', 'directory', ''],
      ['sub', 'pointer', ''],
      ['via', 'link', 'its .git is a link'],
    ])
  })

  test('a root that was made to look like a bare repository is found; a root with .git is not reported', () => {
    gitDir('bare')
    expect(search(0, '/bare').map(r => r.form)).toEqual(['bare'])
    expect(search(0, '/all').some(r => r.path === `${ws}/all`)).toBe(false)
  })

  test('old and new are distinguished by a time that the sandbox cannot set', async () => {
    gitDir('time/old/.git')
    await Bun.sleep(60)
    const since = Date.now()
    gitDir('time/new/.git')
    const past = new Date(0)
    for (const part of ['', '/HEAD', '/config']) utimesSync(`${ws}/time/new/.git${part}`, past, past)
    const planted = search(since, '/time').map(r => [r.path.slice(ws.length + 6), r.planted])
    expect(planted.sort()).toEqual([
      ['new', true],
      ['old', false],
    ])
  })

  test('one that borrows objects which only the sandbox has is named with commands that repair it', () => {
    gitDir('clones/plain/.git')
    gitDir("clones/it's $(here)/.git")
    file('clones/plain/.git/objects/info/alternates', '/elsewhere/objects\n')
    file("clones/it's $(here)/.git/objects/info/alternates", '/run/pen-git/0/objects\n')
    const lines = search(0, '/clones').flatMap(one => describeRepository(one) ?? [])
    const place = `'${ws}/clones/it'"'"'s $(here)`
    expect(lines.toSorted()).toEqual([
      `a repository was made or changed during the run at ${ws}/clones/it's $(here) that lacks objects on the host, because it borrows them in the sandbox (fix: pen run -- git -C ${place}' repack -adq && pen run -- rm ${place}/.git/objects/info/alternates')`,
      `a repository was made or changed during the run at ${ws}/clones/plain`,
    ])
  })

  test('directories behind links are not searched', () => {
    gitDir('elsewhere/.git')
    mkdirSync(`${ws}/links`)
    symlinkSync('../elsewhere', `${ws}/links/in`)
    expect(search(0, '/links')).toEqual([])
  })
})

describe('the budget', () => {
  test('ends the search, and that is reported', () => {
    for (let i = 0; i < 50; i++) mkdirSync(`${ws}/wide/d${i}/e`, { recursive: true })
    const wide = `${ws}/wide`
    expect(findRepositories(wide, { deadlineMs: 5000, since: 0, maxDirs: 10 }).complete).toBe(false)
    let clock = 0
    expect(findRepositories(wide, { deadlineMs: 5, since: 0, now: () => clock++ }).complete).toBe(false)
    expect(findRepositories(wide, { deadlineMs: 5000, since: 0 })).toEqual({
      found: [],
      complete: true,
      unlisted: 0,
    })
  })

  test('counts CPU time too, which a busy machine does not use up', () => {
    for (let i = 0; i < 50; i++) mkdirSync(`${ws}/wide/d${i}/e`, { recursive: true })
    const search = (processorMs: number) =>
      findRepositories(`${ws}/wide`, { deadlineMs: 60_000, processorMs, since: 0 }).complete
    expect([search(0), search(60_000)]).toEqual([false, true])
  })

  test.each([
    [0, 20, 20],
    [50, 20, 50],
    [1000, 100, 1000],
    [3_600_000, 2000, 2000],
  ])('of a run of %d ms is %d ms of work, within %d', (run, processorMs, deadlineMs) =>
    expect(searchBudget(run)).toEqual({ processorMs, deadlineMs }),
  )

  test('is shorter for a sandbox whose end `pen stop` waits for', () =>
    expect(searchBudget(3_600_000, 'kept')).toEqual({ processorMs: 500, deadlineMs: 500 }))

  test('counts what is found and not listed; a directory that cannot be entered is reported', () => {
    for (let i = 0; i < 103; i++) gitDir(`many/r${i}/.git`)
    const search = () => findRepositories(`${ws}/many`, { deadlineMs: 5000, since: 0 })
    const { found, unlisted, complete } = search()
    expect([found.length, unlisted, complete]).toEqual([100, 3, true])
  })
})

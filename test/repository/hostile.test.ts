import { describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { TemporaryRepository, tryGit } from '../temporary-repository.ts'
import { branch, entry, put, putBomb, started } from './evil-objects.ts'
import type { TwoRepositories } from './two-repositories.ts'

async function expectRefused(two: TwoRepositories, why: string | RegExp): Promise<void> {
  const before = two.listing()
  const { isComplete, lines } = await two.sync()
  expect(isComplete).toBe(false)
  expect(lines.join('\n')).toMatch(why)
  expect(two.listing()).toEqual(before)
  two.host.git('fsck', '--strict')
}

describe('an evil tree is refused, and nothing changes on the host', () => {
  test.each(['1160000', '360000', '100664', '0160000', '160001'])('with the mode %s', async mode => {
    using two = started()
    const blob = put(two, 'blob', 'x')
    branch(two, put(two, 'tree', entry(mode, 'lib', blob)))
    await expectRefused(two, /mode|not taken over/)
  })

  test.each([
    '.git',
    '.GIT',
    'git~1',
    'GIT~1',
    '.git~1',
    '.git.',
    '.git ',
    '.git::$INDEX_ALLOCATION',
    '.git\\x',
    '..',
    '.',
    '.g\u200cit',
    '.Gi\ufefft',
    'a/b',
  ])('with the name %j', async name => {
    using two = started()
    const blob = put(two, 'blob', 'x')
    const bytes = Buffer.from(name).toString('latin1')
    branch(two, put(two, 'tree', entry('100644', bytes, blob)))
    await expectRefused(two, 'not taken over')
  })

  test.each(['.gitmodules', '.gitattributes', '.GITMODULES', 'gitmod~1', '.gitmod\u200cules'])(
    'with a link named %j',
    async name => {
      using two = started()
      branch(
        two,
        put(
          two,
          'tree',
          entry('120000', Buffer.from(name).toString('latin1'), put(two, 'blob', '/etc/passwd')),
        ),
      )
      await expectRefused(two, 'not taken over')
    },
  )

  test.each([
    '[submodule "a"]\n\tpath = a\n\turl = ext::sh -c evil\n',
    '[submodule "a"] url = ext::sh -c evil\n',
    '[submodule "../../x"]\n\tpath = a\n\turl = ./a\n',
    '[submodule "a"]\n\tpath = a\n\turl = -u./evil\n',
  ])('with the .gitmodules %j', async text => {
    using two = started()
    branch(two, put(two, 'tree', entry('100644', '.gitmodules', put(two, 'blob', text))))
    await expectRefused(two, 'not taken over')
  })

  test('that is cut off, or has entries twice', async () => {
    using two = started()
    const blob = put(two, 'blob', 'x')
    branch(two, put(two, 'tree', entry('100644', 'a', blob).subarray(0, 20)))
    await expectRefused(two, /not taken over|git failed/)
    branch(two, put(two, 'tree', Buffer.concat([entry('100644', 'a', blob), entry('100644', 'a', blob)])))
    await expectRefused(two, 'not taken over')
  })

  test('that names more paths than git can list', async () => {
    using two = started()
    let tree = put(two, 'tree', entry('100644', 'f', put(two, 'blob', 'x')))
    for (let i = 0; i < 30; i++)
      tree = put(two, 'tree', Buffer.concat([entry('40000', 'a', tree), entry('40000', 'b', tree)]))
    branch(two, tree)
    await expectRefused(two, 'paths')
  })

  test('that lacks an object, and a commit without its tree', async () => {
    using two = started()
    branch(two, put(two, 'tree', entry('100644', 'a', '12'.repeat(20))))
    await expectRefused(two, 'not taken over')
    branch(two, '34'.repeat(20))
    await expectRefused(two, 'not taken over')
  })
})

describe('an evil object is refused', () => {
  test('when its content is not what its name says', async () => {
    using two = started()
    const id = two.commitInside('two')
    const file = `${two.own}/objects/${id.slice(0, 2)}/${id.slice(2)}`
    const other = put(two, 'blob', 'another')
    rmSync(file)
    mkdirSync(`${two.own}/objects/${id.slice(0, 2)}`, { recursive: true })
    writeFileSync(file, readFileSync(`${two.own}/objects/${other.slice(0, 2)}/${other.slice(2)}`))
    const before = two.listing()
    expect((await two.sync()).isComplete).toBe(false)
    // Objects without a ref may have come over: they are what their names say.
    const beside = (files: ReadonlyMap<string, string>) =>
      new Map([...files].filter(([path]) => !path.startsWith('/objects/')))
    expect(beside(two.listing())).toEqual(beside(before))
    two.host.git('fsck', '--strict')
  })

  test('when it is a bomb: a few bytes on disk, more than pen takes', async () => {
    using two = started()
    const script = 'head -c 1200000000 /dev/zero | git hash-object -w --stdin'
    const env = { GIT_DIR: two.own, PATH: process.env['PATH'] ?? '' }
    const big = Bun.spawnSync(['sh', '-c', script], { env }).stdout.toString().trim()
    branch(two, put(two, 'tree', entry('100644', 'bomb', big)))
    await expectRefused(two, 'not taken over')
    expect(existsSync(`${two.entry}/incoming`)).toBe(false)
  })

  test('when it is a bomb of 16 KB: a delta that grows to a gigabyte', async () => {
    using two = started()
    branch(two, put(two, 'tree', entry('100644', 'bomb', putBomb(two))))
    await expectRefused(two, 'not taken over')
    expect(existsSync(`${two.entry}/incoming`)).toBe(false)
  })

  test('when it is a commit with a message of megabytes', async () => {
    using two = started()
    const tree = two.inside('rev-parse', 'HEAD^{tree}')
    const who = 'a <a@example.com> 1700000000 +0000'
    const text = `tree ${tree}\nauthor ${who}\ncommitter ${who}\n\n${'x'.repeat(3_000_000)}\n`
    writeFileSync(`${two.own}/refs/heads/evil`, `${put(two, 'commit', text)}\n`)
    await expectRefused(two, 'bytes')
  })
})

test('beside a refused commit a good one comes over, and nothing is lost inside', async () => {
  using two = started()
  const good = two.commitInside('two')
  const evil = branch(two, put(two, 'tree', entry('1160000', 'lib', put(two, 'blob', 'x'))))
  const { isComplete, lines } = await two.sync()
  expect([isComplete, lines.join()]).toEqual([false, expect.stringContaining('evil stays in the sandbox')])
  expect(two.host.git('rev-parse', 'main')).toBe(good)
  expect(two.host.git('cat-file', '--batch-all-objects', '--batch-check')).not.toContain(evil)
  two.host.git('fsck', '--strict')
  expect(two.inside('cat-file', '-t', evil)).toBe('commit')
  rmSync(`${two.own}/refs/heads/evil`)
  expect(await two.sync()).toEqual({ isComplete: true, hasFailed: false, lines: [] })
  expect(two.host.git('rev-parse', 'main')).toBe(good)
})

describe('a program that the sandbox puts into its repository never runs on the host', () => {
  const RUNS = (program: string): readonly string[] => [
    `[core]\n\tfsmonitor = ${program}\n\thooksPath = ${program}.d\n\tpager = ${program}\n\teditor = ${program}\n`,
    `[core]\n\tsshCommand = ${program}\n\talternateRefsCommand = ${program}\n\tgitProxy = ${program}\n`,
    `[uploadpack]\n\tpackObjectsHook = ${program}\n[alias]\n\tfor-each-ref = !${program}\n\trev-parse = !${program}\n`,
    `[filter "x"]\n\tclean = ${program}\n\tsmudge = ${program}\n[diff]\n\texternal = ${program}\n[gpg]\n\tprogram = ${program}\n`,
    `[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor = true\n\turl = ext::${program}\n`,
  ]

  test('by settings, hooks, includes and alternates', async () => {
    using two = started()
    const [program, canary] = [`${two.host.base}/run`, `${two.host.base}/canary`]
    writeFileSync(program, `#!/bin/sh\necho ran >>${canary}\n`)
    chmodSync(program, 0o755)
    const config = readFileSync(`${two.own}/config`, 'utf8')
    const before = two.host.git('config', '--list', '--local')
    const plant = (): void => {
      for (const hook of [
        'reference-transaction',
        'pre-commit',
        'post-update',
        'post-index-change',
        'pre-auto-gc',
      ])
        for (const dir of [`${two.own}/hooks`, `${program}.d`]) {
          mkdirSync(dir, { recursive: true })
          writeFileSync(`${dir}/${hook}`, readFileSync(program), { mode: 0o755 })
        }
    }
    writeFileSync(`${two.host.base}/included`, RUNS(program).join(''))
    let number = 0
    for (const text of [...RUNS(program), `[include]\n\tpath = ${two.host.base}/included\n`]) {
      // This test's own git inside runs on the host, too.
      writeFileSync(`${two.own}/config`, config)
      rmSync(`${two.own}/hooks`, { recursive: true, force: true })
      two.commitInside(`file${number++}`)
      plant()
      writeFileSync(`${two.own}/config`, `${config}${text}`)
      await two.sync()
      expect([text, existsSync(canary)]).toEqual([text, false])
    }
    two.host.git('status')
    expect(two.host.git('config', '--list', '--local')).toBe(before)
    expect(existsSync(canary)).toBe(false)
  })

  test('by .gitattributes, .gitmodules and config in the working tree', async () => {
    using two = started()
    const canary = `${two.host.base}/canary`
    two.host.git('config', 'filter.f.clean', `touch ${canary}; cat`)
    two.host.git('config', 'filter.f.smudge', `touch ${canary}; cat`)
    two.host.git('config', 'merge.m.driver', `touch ${canary}`)
    two.host.write('.gitattributes', '* filter=f merge=m diff=f\n')
    two.inside('add', '-A')
    two.inside('commit', '-q', '-m', 'attributes')
    await two.sync()
    expect(existsSync(canary)).toBe(false)
  })
})

describe('a damaged or hostile directory', () => {
  test.each([
    ['HEAD is gone', (own: string) => rmSync(`${own}/HEAD`)],
    ['refs is a link elsewhere', (own: string) => replace(`${own}/refs`, '/etc')],
    ['objects is a link elsewhere', (own: string) => replace(`${own}/objects`, '/etc')],
    [
      'packed-refs is a link to a file of the host',
      (own: string) => replace(`${own}/packed-refs`, '/etc/shadow'),
    ],
    ['packed-refs is nonsense', (own: string) => writeFileSync(`${own}/packed-refs`, '\0'.repeat(1000))],
    ['config is nonsense', (own: string) => writeFileSync(`${own}/config`, '[core\n')],
    ['index is nonsense', (own: string) => writeFileSync(`${own}/index`, 'DIRC nonsense')],
    ['the directory is empty', (own: string) => empty(own)],
    ['commondir leads away', (own: string) => writeFileSync(`${own}/commondir`, '/\n')],
    ['worktrees have hostile names', (own: string) => hostileRecords(own)],
  ])('changes nothing on the host: %s', async (_what, damage) => {
    using two = started()
    two.host.git('tag', 'v1')
    await two.sync()
    const before = two.listing()
    damage(two.own)
    await two.sync()
    const after = two.listing()
    for (const path of ['/index', '/logs/HEAD']) expect(after.get(path)).toBe(before.get(path) ?? '')
    expect(after).toEqual(before)
    two.host.git('fsck', '--strict')
  })

  const replace = (path: string, to: string): void => {
    rmSync(path, { recursive: true, force: true })
    symlinkSync(to, path)
  }
  const empty = (path: string): void => {
    rmSync(path, { recursive: true })
    mkdirSync(path)
  }
  const hostileRecords = (own: string): void => {
    for (const name of ['$(touch x)', '-x', 'a b', '\x1b[2J', '..x']) {
      mkdirSync(`${own}/worktrees/${name}`, { recursive: true })
      writeFileSync(`${own}/worktrees/${name}/HEAD`, 'ref: refs/heads/main\n')
      writeFileSync(`${own}/worktrees/${name}/commondir`, '../..\n')
    }
  }
})

test('many new refs are taken, and no file of the host is a link or executable', async () => {
  using two = started()
  const id = two.inside('rev-parse', 'main')
  const lines = Array.from({ length: 1500 }, (_, i) => `${id} refs/heads/f/${String(i).padStart(4, '0')}\n`)
  appendFileSync(`${two.own}/packed-refs`, '')
  writeFileSync(
    `${two.own}/packed-refs`,
    `# pack-refs with: sorted \n${lines.join('')}${id} refs/heads/main\n`,
  )
  await two.sync()
  const count = () => two.host.git('for-each-ref', 'refs/heads/f').split('\n').length
  await two.sync()
  expect(count()).toBe(1500)
  for (const [path, what] of two.listing())
    expect([path, /^(?:directory|file [46]\d\d )/.test(what) || path.startsWith('/hooks')]).toEqual([
      path,
      true,
    ])
})

/** Each makes git look for another directory, or for a part elsewhere. `$1` is another repository of the user. */
test.each([
  ['is gone, and one lies in it', 'mkdir .git; mv [a-z]* HEAD .git'],
  ['has no HEAD', 'rm HEAD; git init -q .'],
  ['names another as its common one', 'echo "$1" >commondir'],
  ['has the refs of another', 'rm -r refs packed-refs; ln -s "$1/refs" refs'],
  ['has the objects of another', 'rm -r objects; ln -s "$1/objects" objects'],
  ['is a pointer to another', 'rm HEAD; ln -s "$1/HEAD" HEAD; echo "gitdir: $1" >.git'],
])('a directory that %s after a sync brings nothing of another repository', async (_how, damage) => {
  using two = started()
  using other = new TemporaryRepository()
  const secret = other.commit('secret')
  const id = two.commitInside('two')
  await two.sync()
  const before = two.listing()
  Bun.spawnSync(['sh', '-c', damage, 'sh', other.dir], { cwd: two.own })
  await two.sync()
  expect(two.host.git('rev-parse', 'main')).toBe(id)
  expect(tryGit(two.host.top, ['cat-file', '-e', secret]).code).not.toBe(0)
  expect([...two.listing().keys()].filter(path => !before.has(path))).toEqual([])
})

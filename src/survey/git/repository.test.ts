import { beforeAll, describe, expect, test } from 'bun:test'
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { base, fresh, git, HOME, shown, survey, surveyShared } from '../../../test/repository-fixture.ts'
import { surveyRepository } from './repository.ts'

describe('a repository with submodules and worktrees', () => {
  test('gives the sandbox its own git directory, and holds only pointers in the working tree', () => {
    expect(shown(survey('main'))).toEqual({
      kind: 'directory',
      git: 'main/.git',
      submodules: ['main/.git/modules/libs/lib'],
      records: ['.', 'worktrees/inner'],
      empty: [],
      protect: ['main/inner/.git', 'main/libs/lib/.git'],
      pins: ['main/inner', 'main/libs', 'main/libs/lib'],
      watch: [],
      warnings: 0,
    })
  })

  test('a linked worktree has the shared repository, and its own record alone', () => {
    expect(shown(survey('linked'))).toMatchObject({
      kind: 'worktree',
      git: 'main/.git',
      records: ['worktrees/linked'],
      protect: ['linked/.git'],
    })
  })

  test('a submodule as workspace has its own git directory alone', () => {
    expect(shown(survey('main/libs/lib'))).toMatchObject({
      kind: 'submodule',
      git: 'main/.git/modules/libs/lib',
      submodules: [],
      records: ['.'],
      protect: ['main/libs/lib/.git'],
    })
  })

  test('a subdirectory sees no repository, and may get one of its own', () => {
    const facts = shown(survey('main/libs'))
    expect(facts).toMatchObject({ kind: 'ancestor', git: undefined, protect: ['main/libs/lib/.git'] })
    expect(facts.watch).toContain('main/libs/.git git-dir')
    expect(facts.watch).toContain('main/libs/.git/hooks git-hooks')
    expect(survey('main/libs').warnings.join()).toContain(`part of the repository ${base}/main, which`)
  })

  test('what an enclosing repository enters or runs in a subdirectory is held there, and nothing outside of it', () => {
    git(base, 'clone', '-q', 'main', 'around')
    for (const path of ['sub/lib', 'sub/empty', 'other'])
      git(`${base}/around`, 'submodule', '--quiet', 'add', `${base}/lib`, path)
    git(`${base}/around`, 'submodule', '--quiet', 'deinit', '-f', 'sub/empty')
    git(`${base}/around`, 'worktree', 'add', '-q', 'sub/tree', '-b', 'tree')
    git(`${base}/around`, 'config', 'core.hooksPath', 'sub/hooks')
    git(`${base}/around/sub/lib`, 'config', 'core.hooksPath', 'own-hooks')
    writeFileSync(`${base}/enclosed.gitconfig`, '[core]\nhooksPath = team\n')
    const facts = shown(survey('around/sub', { userConfigs: [`${base}/enclosed.gitconfig`] }))
    expect(facts).toMatchObject({
      ...{ kind: 'ancestor', git: undefined, records: [], empty: [] },
      protect: ['around/sub/empty', 'around/sub/lib/.git', 'around/sub/tree/.git'],
    })
    expect(facts.watch).toEqual(
      expect.arrayContaining(
        ['hooks', 'lib/own-hooks', 'lib/team', 'team', 'tree/sub/hooks', 'tree/team'].map(
          path => `around/sub/${path} nothing`,
        ),
      ),
    )
    // The settings of a superproject count for a submodule as well.
    git(`${base}/around`, 'config', 'core.hooksPath', 'other/hooks')
    expect(shown(survey('around/other'))).toMatchObject({ kind: 'submodule' })
    expect(shown(survey('around/other')).watch).toContain('around/other/hooks nothing')
  })

  test('a directory without a repository may get one', () => {
    const dir = fresh('plain')
    expect(shown(survey('plain'))).toMatchObject({ kind: 'none', git: undefined, records: [], warnings: 0 })
    expect(survey('plain').watch.find(({ path }) => path === `${dir}/.git`)?.rule.kind).toBe('git-dir')
  })

  test('a directory without a repository may not become a bare one; one that is stays as it is', () => {
    fresh('no-bare')
    expect(shown(survey('no-bare')).watch).toContain('no-bare/HEAD nothing')
    writeFileSync(`${fresh('has-head')}/HEAD`, 'mine')
    expect(shown(survey('has-head'))).toMatchObject({ protect: [] })
    const parts = ['commondir nothing', 'config git-config', 'config.worktree git-config', 'hooks git-hooks']
    for (const part of parts) expect(shown(survey('has-head')).watch).toContain(`has-head/${part}`)
    git(base, 'init', '-q', '--bare', 'is-bare')
    expect(shown(survey('is-bare')).watch).not.toContain('is-bare/HEAD nothing')
    expect(shown(survey('main')).watch).toEqual([])
  })

  test('a place is borrowed for each repository, by its name', () => {
    const { git: top } = survey('main')
    const name = new Bun.CryptoHasher('sha256').update('/modules/libs/lib').digest('hex').slice(0, 16)
    expect([top, ...(top?.submodules ?? [])].map(one => one?.lentAt)).toEqual([
      '/run/pen-git/0',
      `/run/pen-git/${name}`,
    ])
    expect(top?.hasLfs).toBe(false)
    mkdirSync(`${base}/main/.git/lfs`)
    expect(survey('main').git?.hasLfs).toBe(true)
  })
})

test('a hard link to a file of the git directory stops the start: the sandbox would write through it', () => {
  const dir = fresh('linked-files')
  git(dir, 'init', '-q')
  writeFileSync(`${dir}/.git/hooks/pre-commit`, '')
  for (const name of ['config', 'HEAD', 'hooks/pre-commit', 'info/exclude']) {
    linkSync(`${dir}/.git/${name}`, `${dir}/kept`)
    expect(() => survey('linked-files')).toThrow('hard links')
    rmSync(`${dir}/kept`)
  }
  expect(survey('linked-files').kind).toBe('directory')
})

describe('gitlinks', () => {
  beforeAll(() => {
    git(base, 'init', '-q', '-b', 'main', 'super')
    for (const path of ['a/b/one', 'a/two', 'three'])
      git(`${base}/super`, 'submodule', '--quiet', 'add', `${base}/lib`, path)
    git(`${base}/super`, 'commit', '-q', '-m', 'modules')
    git(base, 'clone', '-q', 'super', 'cloned')
  })

  test('without a checkout are empty directories of the sandbox, and their ancestors are pinned', () => {
    expect(shown(survey('cloned'))).toMatchObject({
      empty: ['cloned/a/b/one', 'cloned/a/two', 'cloned/three'],
      pins: ['cloned/a', 'cloned/a/b'],
      protect: [],
    })
  })

  test('with a checkout have their .git held, with every ancestor pinned', () => {
    git(`${base}/cloned`, 'submodule', '--quiet', 'update', '--init', 'a/b/one')
    expect(shown(survey('cloned'))).toMatchObject({
      empty: ['cloned/a/two', 'cloned/three'],
      protect: ['cloned/a/b/one/.git'],
      pins: ['cloned/a', 'cloned/a/b', 'cloned/a/b/one'],
      submodules: ['cloned/.git/modules/a/b/one'],
    })
  })

  test('with files and no .git are watched, so that no repository appears there', () => {
    writeFileSync(`${base}/cloned/three/file`, '')
    expect(shown(survey('cloned')).watch).toContain('cloned/three/.git nothing')
    rmSync(`${base}/cloned/three/file`)
  })

  test('that were removed from the working tree cannot become a repository', () => {
    rmSync(`${base}/cloned/three`, { recursive: true })
    expect(shown(survey('cloned')).watch).toContain('cloned/three/.git nothing')
  })

  test('of a linked worktree that lies in the project are held too', () => {
    git(`${base}/cloned`, 'worktree', 'add', '-q', 'tree', '-b', 'tree')
    const { empty, records } = shown(survey('cloned'))
    expect(records).toEqual(['.', 'worktrees/tree'])
    expect(empty).toEqual(expect.arrayContaining(['cloned/tree/a/b/one', 'cloned/tree/a/two']))
  })

  test('of a submodule are held too: git status enters one after the other', () => {
    git(base, 'init', '-q', '-b', 'main', 'outer')
    git(`${base}/outer`, 'submodule', '--quiet', 'add', `${base}/super`, 'sub')
    expect(shown(survey('outer'))).toMatchObject({
      empty: ['outer/sub/a/b/one', 'outer/sub/a/two', 'outer/sub/three'],
      pins: ['outer/sub', 'outer/sub/a', 'outer/sub/a/b'],
    })
  })

  test('in an index that pen cannot read stop the start', () => {
    const dir = fresh('unread')
    git(dir, 'init', '-q')
    writeFileSync(`${dir}/.git/index`, Buffer.concat([Buffer.from('DIRX'), Buffer.from([0, 0, 0xe0, 0])]))
    expect(() => survey('unread')).toThrow('submodules')
  })
})

describe('a sandbox that shares the repository', () => {
  test('has no git directory of its own; hooks and settings are held', () => {
    expect(shown(surveyShared('main'))).toMatchObject({
      kind: 'directory',
      git: undefined,
      records: [],
      protect: ['main/.git/config', 'main/.git/hooks'],
      pins: ['main/.git'],
      watch: [
        'main/.git/branches git-hooks',
        'main/.git/commondir nothing',
        'main/.git/config.worktree git-config',
        'main/.git/objects/info/alternates nothing',
        'main/.git/remotes nothing',
      ],
    })
  })
})

describe('a pointer that was tampered with', () => {
  const cases: readonly [string, () => string, string][] = [
    [
      "another repository's git directory",
      () => `gitdir: ${base}/lib/.git\n`,
      'does not name this directory',
    ],
    [
      "another worktree's record",
      () => `gitdir: ${base}/main/.git/worktrees/linked\n`,
      'belongs to another worktree',
    ],
    [
      "another submodule's directory",
      () => `gitdir: ${base}/main/.git/modules/libs/lib`,
      'does not name this directory',
    ],
    ['a directory above', () => `gitdir: ${base}`, 'above the workspace'],
    ['the root', () => 'gitdir: /', 'above the workspace'],
    ['nothing there', () => `gitdir: ${base}/absent`, 'does not exist'],
    ['a file', () => `gitdir: ${base}/main/.git/HEAD`, 'not name a directory'],
    ['two lines', () => `gitdir: ${base}/lib/.git\nx`, 'not a "gitdir'],
    ['no prefix', () => `${base}/lib/.git`, 'not a "gitdir'],
    ['a megabyte', () => `gitdir: ${'x/'.repeat(500_000)}`, 'not a "gitdir'],
  ]
  test.each(cases)('to %s is not obeyed, and stays as it is', (name, text, why) => {
    const dir = fresh(`bad-${name.replace(/\W/g, '-')}`)
    writeFileSync(`${dir}/.git`, text())
    const facts = surveyRepository(dir, { home: HOME, ownRepository: true, stateDir: '/proc/nonexistent' })
    expect(facts).toMatchObject({ kind: 'refused', git: undefined })
    expect(facts.warnings.join()).toContain(why)
    expect(facts.protect.map(p => p.path)).toEqual([`${dir}/.git`])
  })

  test('through a symbolic link is not obeyed; the same place by its real name is', () => {
    const dir = fresh('via')
    renameSync(`${base}/linked`, `${dir}/linked`)
    symlinkSync(`${base}/main`, `${dir}/short`)
    const record = `${base}/main/.git/worktrees/linked`
    writeFileSync(`${record}/gitdir`, `${dir}/linked/.git\n`)
    writeFileSync(`${dir}/linked/.git`, `gitdir: ${dir}/short/.git/worktrees/linked\n`)
    expect(survey('via/linked').warnings.join()).toContain('symbolic link')
    writeFileSync(`${dir}/linked/.git`, `gitdir: ${record}\n`)
    expect(survey('via/linked').kind).toBe('worktree')
  })

  test('to the home directory of the user is not obeyed', () => {
    const dir = fresh('home/project')
    writeFileSync(`${dir}/.git`, `gitdir: ${base}/home2`)
    mkdirSync(`${base}/home2`)
    expect(survey('home/project', { home: `${base}/home2/user` }).warnings.join()).toContain('home directory')
  })
})

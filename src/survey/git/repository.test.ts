import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RepositoryFacts, surveyRepository } from './repository.ts'

let base = ''
const HOME = '/home/nobody-here'

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-repository-')))
  git(base, 'init', '-q', '-b', 'main', 'lib')
  git(`${base}/lib`, 'commit', '-q', '--allow-empty', '-m', 'one')
  git(base, 'init', '-q', '-b', 'main', 'main')
  git(`${base}/main`, 'commit', '-q', '--allow-empty', '-m', 'one')
  git(`${base}/main`, 'submodule', '--quiet', 'add', `${base}/lib`, 'libs/lib')
  git(`${base}/main`, 'worktree', 'add', '-q', '../linked', '-b', 'linked')
  git(`${base}/main`, 'worktree', 'add', '-q', 'inner', '-b', 'inner')
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

function git(cwd: string, ...args: readonly string[]): void {
  const set = ['user.name=a', 'user.email=a@example.com', 'protocol.file.allow=always'].flatMap(s => [
    '-c',
    s,
  ])
  const env = {
    PATH: process.env['PATH'] ?? '',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
  }
  const { exitCode, stderr } = Bun.spawnSync(['git', ...set, ...args], { cwd, env })
  if (exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${stderr.toString()}`)
}

const survey = (path: string, options = {}): RepositoryFacts =>
  surveyRepository(`${base}/${path}`, {
    home: HOME,
    ownRepository: true,
    stateDir: '/nonexistent',
    ...options,
  })

/** A sandbox without mounts writes the host's git directory. */
const surveyShared = (path: string, options = {}): RepositoryFacts =>
  survey(path, { ownRepository: false, stateDir: '/nonexistent', ...options })

/** Paths relative to the fixture, in short. */
function shown(facts: RepositoryFacts) {
  const short = (path: string): string => path.replace(`${base}/`, '')
  return {
    kind: facts.kind,
    git: facts.git === undefined ? undefined : short(facts.git.path),
    submodules: facts.git?.submodules.map(({ path }) => short(path)) ?? [],
    records: facts.records,
    empty: facts.emptyModules.map(short),
    protect: facts.protect.map(p => short(p.path)),
    pins: facts.pins.map(short),
    watch: facts.watch.map(w => `${short(w.path)} ${w.rule.kind}`).sort(),
    warnings: facts.warnings.length,
  }
}

function fresh(name: string): string {
  const dir = `${base}/${name}`
  mkdirSync(dir, { recursive: true })
  return dir
}

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
    expect(facts).toMatchObject({ kind: 'ancestor', git: undefined, protect: [] })
    expect(facts.watch).toContain('main/libs/.git git-dir')
    expect(facts.watch).toContain('main/libs/.git/hooks git-hooks')
    expect(survey('main/libs').warnings.join()).toContain(`part of the repository ${base}/main, which`)
  })

  test('a directory without a repository may get one', () => {
    const dir = fresh('plain')
    expect(shown(survey('plain'))).toMatchObject({ kind: 'none', git: undefined, records: [], warnings: 0 })
    expect(survey('plain').watch.find(({ path }) => path === `${dir}/.git`)?.rule.kind).toBe('git-dir')
  })

  test('a place is borrowed for each repository, and no two share one', () => {
    const { git: top } = survey('main')
    expect([top, ...(top?.submodules ?? [])].map(one => one?.lentAt)).toEqual([
      '/run/pen-git/0',
      '/run/pen-git/1',
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
        'main/.git/objects/info/http-alternates nothing',
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
    const facts = surveyRepository(dir, { home: HOME, ownRepository: true, stateDir: '/nonexistent' })
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

describe('other forms', () => {
  test('a .git that is a link is watched and not followed', () => {
    const dir = fresh('linkgit')
    symlinkSync(`${base}/lib/.git`, `${dir}/.git`)
    const facts = surveyRepository(dir, { home: HOME, ownRepository: true, stateDir: '/nonexistent' })
    expect(facts).toMatchObject({ kind: 'refused', git: undefined, protect: [] })
    expect(facts.watch).toEqual([
      { path: `${dir}/.git`, root: dir, rule: { kind: 'link', text: `${base}/lib/.git` } },
    ])
  })

  test('a bare repository as workspace keeps its settings and hooks', () => {
    git(base, 'init', '-q', '--bare', 'bare.git')
    expect(shown(survey('bare.git'))).toMatchObject({
      kind: 'bare',
      git: undefined,
      protect: ['bare.git/config', 'bare.git/hooks'],
    })
  })

  test('a pointer to a directory in the workspace: the sandbox has its own at that place', () => {
    git(base, 'init', '-q', 'hidden')
    renameSync(`${base}/hidden/.git`, `${base}/hidden/.real`)
    writeFileSync(`${base}/hidden/.git`, 'gitdir: ./.real\n')
    expect(shown(survey('hidden'))).toMatchObject({
      kind: 'directory',
      git: 'hidden/.real',
      protect: ['hidden/.git'],
    })
  })

  test('a repository whose core.worktree is the project, as its pointer says, works inside', () => {
    const dir = fresh('apart/work')
    git(`${base}/apart`, 'init', '-q', '--separate-git-dir', `${base}/apart/store`, dir)
    expect(survey('apart/work').kind).toBe('refused')
    git(dir, 'config', 'core.worktree', dir)
    expect(shown(survey('apart/work'))).toMatchObject({ kind: 'submodule', git: 'apart/store' })
  })

  test('refs in reftable are not supported: the directory is read-only, and the fix is named', () => {
    git(base, 'init', '-q', 'tabled')
    mkdirSync(`${base}/tabled/.git/reftable`)
    const facts = survey('tabled')
    expect(shown(facts)).toMatchObject({ git: undefined, protect: ['tabled/.git'] })
    expect(facts.warnings.join()).toContain('git refs migrate')
  })

  test('hooks and included settings elsewhere in the workspace are protected too', () => {
    git(base, 'init', '-q', 'hooked')
    git(`${base}/hooked`, 'config', 'core.hooksPath', 'tools/hooks')
    git(`${base}/hooked`, 'config', 'include.path', '../shared.gitconfig')
    mkdirSync(`${base}/hooked/tools/hooks`, { recursive: true })
    writeFileSync(`${base}/user.gitconfig`, '[core]\nhooksPath = .team-hooks\n')
    const facts = shown(survey('hooked', { userConfigs: [`${base}/user.gitconfig`] }))
    expect(facts.protect).toContain('hooked/tools/hooks')
    expect(facts.pins).toContain('hooked/tools')
    expect(facts.watch).toContain('hooked/shared.gitconfig nothing')
    expect(facts.watch).toContain('hooked/.team-hooks nothing')
  })

  test('a bare repository with worktrees beside it gives each worktree in the project a record', () => {
    const dir = fresh('hub')
    git(dir, 'clone', '-q', '--bare', `${base}/lib`, '.bare')
    writeFileSync(`${dir}/.git`, 'gitdir: ./.bare\n')
    git(`${dir}/.bare`, 'worktree', 'add', '-q', '../work', '-b', 'work')
    git(`${dir}/.bare`, 'worktree', 'add', '-q', '../../hub-outside', '-b', 'outside')
    const facts = shown(survey('hub'))
    expect(facts.git).toBe('hub/.bare')
    expect(facts.records).toContain('worktrees/work')
    expect(facts.records).not.toContain('worktrees/hub-outside')
    expect(facts.protect).toEqual(['hub/.git', 'hub/work/.git'])
    expect(shown(survey('hub/work'))).toMatchObject({ git: 'hub/.bare', records: ['worktrees/work'] })
  })

  test('what included settings include is protected too, and what they name by the home directory', () => {
    const dir = fresh('nested')
    git(dir, 'init', '-q', '.')
    git(dir, 'config', 'include.path', '../conf/a')
    mkdirSync(`${dir}/conf`)
    writeFileSync(`${dir}/conf/a`, '[include]\npath = b\npath = a\n')
    writeFileSync(
      `${dir}/conf/b`,
      '[includeIf "gitdir:/"]\npath = ~/nested/conf/c\n[core]\nhooksPath = ~/nested/h\n',
    )
    const facts = shown(survey('nested', { home: base }))
    expect(facts.protect).toEqual(expect.arrayContaining(['nested/conf/a', 'nested/conf/b']))
    expect(facts.watch).toEqual(expect.arrayContaining(['nested/conf/c nothing', 'nested/h nothing']))
  })
  test("the user's own settings, kept in the workspace behind a link, are held with what they lead to", () => {
    const dir = fresh('dotfiles')
    writeFileSync(
      `${dir}/gitconfig`,
      '[core]\nhooksPath = ~/dotfiles/githooks\n[include]\npath = ~/dotfiles/more\n',
    )
    symlinkSync('dotfiles/gitconfig', `${base}/.gitconfig`)
    const facts = shown(survey('dotfiles', { home: base, userConfigs: [`${base}/.gitconfig`] }))
    expect(facts.protect).toEqual(['dotfiles/gitconfig'])
    expect(facts.watch).toEqual(
      expect.arrayContaining(['dotfiles/githooks nothing', 'dotfiles/more nothing']),
    )
  })
  test('programs that settings make git run are held in the workspace; files that they only mention are not', () => {
    git(base, 'init', '-q', 'driven')
    const dir = `${base}/driven`
    mkdirSync(`${dir}/tools`)
    for (const name of [
      'tools/monitor',
      'tools/merge.js',
      'tools/asked',
      'tools/linked',
      'clean.py',
      'asked',
    ])
      writeFileSync(`${dir}/${name}`, '')
    git(dir, 'config', 'core.fsmonitor', 'tools/monitor')
    git(dir, 'config', 'merge.lock.driver', 'node "./tools/merge.js" %A %O')
    git(dir, 'config', 'diff.x.textconv', 'tools/absent')
    git(dir, 'config', 'diff.y.textconv', 'tools/linked')
    git(dir, 'config', 'alias.ask', '!tools/asked')
    linkSync(`${dir}/tools/linked`, `${dir}/other`)
    writeFileSync(`${base}/filters`, '[filter "f"]\nclean = python3 clean.py asked\nsmudge = cat\n')
    const facts = survey('driven', { userConfigs: [`${base}/filters`] })
    const { protect, watch } = shown(facts)
    expect(protect.filter(path => !path.includes('/.git'))).toEqual([
      'driven/clean.py',
      'driven/tools/merge.js',
      'driven/tools/monitor',
    ])
    expect(watch.filter(place => place.includes('/tools'))).toEqual([])
    expect(facts.warnings.join()).toContain('driven/tools/linked')
  })

  test('hooks of a template for new repositories are held, what else is in it is not', () => {
    const dir = fresh('template')
    mkdirSync(`${dir}/git/hooks`, { recursive: true })
    writeFileSync(`${dir}/git/description`, '')
    writeFileSync(`${base}/templates`, '[init]\ntemplateDir = ~/template/git\n')
    const facts = shown(survey('template', { home: base, userConfigs: [`${base}/templates`] }))
    expect(facts.protect).toEqual(['template/git/hooks'])
  })

  test('hooks at the top of the workspace cannot be held, and that is reported', () => {
    git(base, 'init', '-q', 'top')
    git(`${base}/top`, 'config', 'core.hooksPath', '.')
    expect(survey('top').warnings.join()).toContain('core.hooksPath')
  })

  test('many submodules each have their own directory, and their pointers are held', () => {
    git(base, 'init', '-q', 'many')
    for (let i = 0; i < 20; i++) {
      const dir = fresh(`many/.git/modules/group/m${i}`)
      mkdirSync(`${dir}/objects`)
      writeFileSync(`${dir}/HEAD`, 'ref: refs/heads/main\n')
      writeFileSync(`${dir}/config`, `[core]\nworktree = ../../../../m${i}\n`)
      writeFileSync(`${fresh(`many/m${i}`)}/.git`, `gitdir: ../.git/modules/group/m${i}\n`)
    }
    const facts = shown(survey('many'))
    expect(facts.submodules).toHaveLength(20)
    expect(facts.protect).toHaveLength(20)
    expect(facts.warnings).toBe(0)
  })

  test('submodules that pen cannot find stay out of the sandbox, with a warning', () => {
    for (const [name, hide] of [
      ['crowd', (dir: string) => Array.from({ length: 700 }, (_, i) => mkdirSync(`${dir}/a${i}`))],
      ['deep', (dir: string) => mkdirSync(`${dir}/${'a/'.repeat(12)}`, { recursive: true })],
      ['veiled', (dir: string) => symlinkSync('../../x', `${dir}/libs`)],
    ] as const) {
      git(base, 'init', '-q', name)
      hide(fresh(`${name}/.git/modules`))
      expect(survey(name).warnings.join()).toContain('some submodules do not work inside')
      expect(shown(survey(name)).submodules).toEqual([])
    }
  })
})

describe('objects borrowed from elsewhere', () => {
  const borrowed = (name: string) =>
    survey(name).git?.alternates.map(({ from, at }) => [from.replace(`${base}/`, ''), at])

  test('are mounted at the path that the file names', () => {
    git(base, 'clone', '-q', '--shared', 'lib', 'borrower')
    expect(borrowed('borrower')).toEqual([['lib/.git/objects', `${base}/lib/.git/objects`]])
  })

  test('by a relative path are mounted where the path leads from the place inside', () => {
    writeFileSync(`${base}/borrower/.git/objects/info/alternates`, '../../../lib/.git/objects\n')
    expect(borrowed('borrower')).toEqual([['lib/.git/objects', '/run/lib/.git/objects']])
  })

  test('are followed, also in a circle; comments and what is not there are ignored', () => {
    git(base, 'clone', '-q', '--shared', 'borrower', 'second')
    writeFileSync(
      `${base}/second/.git/objects/info/alternates`,
      `# a comment\n${base}/absent\n${base}/borrower/.git/objects\n`,
    )
    writeFileSync(`${base}/borrower/.git/objects/info/alternates`, `${base}/second/.git/objects\n`)
    expect(borrowed('second')).toEqual([
      ['borrower/.git/objects', `${base}/borrower/.git/objects`],
      ['second/.git/objects', `${base}/second/.git/objects`],
    ])
  })

  test('are at most fifty, and only the objects of repositories: the file may be the work of a sandbox', () => {
    const file = `${base}/second/.git/objects/info/alternates`
    writeFileSync(file, `${fresh('stores/objects')}\n${fresh('stores/.ssh')}\n${base}/lib/.git\n`)
    expect(borrowed('second')).toEqual([])
    const lines = Array.from({ length: 60 }, (_, i) => {
      for (const part of ['objects', 'refs']) fresh(`stores/s${i}/${part}`)
      writeFileSync(`${base}/stores/s${i}/HEAD`, 'ref: refs/heads/main\n')
      return `${base}/stores/s${i}/objects\n`
    })
    writeFileSync(file, lines.join(''))
    expect(borrowed('second')).toHaveLength(50)
  })
})

describe('other protected places', () => {
  test('are held when they exist, watched when not, and followed through links inside the workspace only', () => {
    const dir = fresh('places')
    mkdirSync(`${dir}/.vscode`)
    mkdirSync(`${dir}/dotfiles/cursor`, { recursive: true })
    symlinkSync('dotfiles/cursor', `${dir}/.cursor`)
    symlinkSync('/etc', `${dir}/.claude`)
    symlinkSync('later', `${dir}/.zed`)
    const names = ['.vscode', '.cursor', '.claude/settings.json', '.zed', '.kiro/hooks', '.vscode/tasks.json']
    const facts = shown(survey('places', { protect: names.map(n => `${dir}/${n}`) }))
    expect(facts.protect).toEqual(['places/.vscode', 'places/dotfiles/cursor'])
    expect(facts.pins).toEqual(['places/dotfiles'])
    expect(facts.watch.filter(w => !w.includes('.git'))).toEqual([
      'places/.claude link',
      'places/.cursor link',
      'places/.kiro/hooks nothing',
      'places/.zed link',
      'places/later nothing',
    ])
  })
})

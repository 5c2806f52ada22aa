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
  surveyRepository(`${base}/${path}`, { home: HOME, ...options })

/** Paths relative to the fixture, in short. */
function shown(facts: RepositoryFacts) {
  const short = (path: string): string => path.replace(`${base}/`, '')
  return {
    kind: facts.kind,
    mounts: facts.mounts.map(m => short(m.path)),
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
  test('its hooks, settings and pointers are held, their parents pinned, absent ones watched', () => {
    expect(shown(survey('main'))).toEqual({
      kind: 'directory',
      mounts: [],
      protect: [
        'main/.git/config',
        'main/.git/hooks',
        'main/.git/modules/libs/lib/config',
        'main/.git/modules/libs/lib/hooks',
        'main/.git/worktrees/inner/commondir',
        'main/.git/worktrees/inner/gitdir',
        'main/.git/worktrees/linked',
        'main/inner/.git',
        'main/libs/lib/.git',
      ],
      pins: [
        'main/.git',
        'main/.git/modules',
        'main/.git/modules/libs',
        'main/.git/modules/libs/lib',
        'main/.git/worktrees',
        'main/.git/worktrees/inner',
        'main/inner',
        'main/libs',
        'main/libs/lib',
      ],
      watch: [
        'main/.git/branches git-hooks',
        'main/.git/commondir nothing',
        'main/.git/config.worktree git-config',
        'main/.git/modules/libs/lib/branches git-hooks',
        'main/.git/modules/libs/lib/commondir nothing',
        'main/.git/modules/libs/lib/config.worktree git-config',
        'main/.git/modules/libs/lib/remotes nothing',
        'main/.git/remotes nothing',
        'main/.git/worktrees/inner/config.worktree git-config',
      ],
      warnings: 0,
    })
  })

  test('a linked worktree brings the shared repository, with the other worktrees and submodules read-only', () => {
    const facts = shown(survey('linked'))
    expect(facts.kind).toBe('worktree')
    expect(facts.mounts).toEqual(['main/.git', 'main/.git/worktrees/linked'])
    expect(facts.protect).toEqual([
      'linked/.git',
      'main/.git/config',
      'main/.git/hooks',
      'main/.git/modules',
      'main/.git/worktrees',
      'main/.git/worktrees/linked/commondir',
      'main/.git/worktrees/linked/gitdir',
    ])
    expect(facts.pins).toEqual([])
  })

  test('a submodule as workspace brings its own git directory alone', () => {
    const facts = shown(survey('main/libs/lib'))
    expect(facts.kind).toBe('submodule')
    expect(facts.mounts).toEqual(['main/.git/modules/libs/lib'])
    expect(facts.protect).toContain('main/.git/modules/libs/lib/hooks')
    expect(facts.protect).toContain('main/libs/lib/.git')
  })

  test('a subdirectory sees no repository, and may get one of its own', () => {
    const facts = shown(survey('main/libs'))
    expect(facts).toMatchObject({ kind: 'ancestor', mounts: [], protect: [] })
    expect(facts.watch).toContain('main/libs/.git git-dir')
    expect(facts.watch).toContain('main/libs/.git/hooks git-hooks')
    expect(survey('main/libs').warnings.join()).toContain(`part of the repository ${base}/main, which`)
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
    const facts = surveyRepository(dir, { home: HOME })
    expect(facts).toMatchObject({ kind: 'refused', mounts: [] })
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
    expect(surveyRepository(dir, { home: `${base}/home2/user` }).warnings.join()).toContain('home directory')
  })
})

describe('other forms', () => {
  test('a .git that is a link is watched and not followed', () => {
    const dir = fresh('linkgit')
    symlinkSync(`${base}/lib/.git`, `${dir}/.git`)
    const facts = surveyRepository(dir, { home: HOME })
    expect(facts).toMatchObject({ kind: 'refused', mounts: [], protect: [] })
    expect(facts.watch).toEqual([
      { path: `${dir}/.git`, root: dir, rule: { kind: 'link', text: `${base}/lib/.git` } },
    ])
  })

  test('a bare repository as workspace keeps its settings and hooks', () => {
    git(base, 'init', '-q', '--bare', 'bare.git')
    expect(shown(survey('bare.git'))).toMatchObject({
      kind: 'bare',
      protect: ['bare.git/config', 'bare.git/hooks'],
    })
  })

  test('a pointer to a directory in the workspace protects that directory', () => {
    git(base, 'init', '-q', 'hidden')
    renameSync(`${base}/hidden/.git`, `${base}/hidden/.real`)
    writeFileSync(`${base}/hidden/.git`, 'gitdir: ./.real\n')
    const facts = shown(survey('hidden'))
    expect(facts.kind).toBe('directory')
    expect(facts.protect).toEqual(['hidden/.git', 'hidden/.real/config', 'hidden/.real/hooks'])
    expect(facts.pins).toEqual(['hidden/.real'])
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

  test('worktrees of a repository that the pointer names, or that the workspace is, keep their records', () => {
    const dir = fresh('hub')
    git(dir, 'clone', '-q', '--bare', `${base}/lib`, '.bare')
    writeFileSync(`${dir}/.git`, 'gitdir: ./.bare\n')
    git(`${dir}/.bare`, 'worktree', 'add', '-q', '../work', '-b', 'work')
    const record = 'hub/.bare/worktrees/work'
    const held = [`${record}/commondir`, `${record}/gitdir`, 'hub/work/.git']
    expect(shown(survey('hub')).protect).toEqual(expect.arrayContaining(held))
    expect(shown(survey('hub/.bare')).protect).toContain(record)
  })
  test('a repository that shares the settings of another, inside the workspace, has those held', () => {
    const dir = fresh('shared')
    git(dir, 'init', '-q', '.')
    git(dir, 'clone', '-q', '--bare', `${base}/lib`, 'common')
    writeFileSync(`${dir}/.git/commondir`, '../common\n')
    expect(shown(survey('shared')).protect).toEqual(
      expect.arrayContaining(['shared/.git/commondir', 'shared/common/config', 'shared/common/hooks']),
    )
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

  test('many submodules are held by one mount, and their pointers watched', () => {
    git(base, 'init', '-q', 'many')
    for (let i = 0; i < 20; i++) {
      const dir = fresh(`many/.git/modules/group/m${i}`)
      writeFileSync(`${dir}/HEAD`, 'ref: refs/heads/main\n')
      writeFileSync(`${dir}/config`, `[core]\nworktree = ../../../../m${i}\n`)
      writeFileSync(`${fresh(`many/m${i}`)}/.git`, `gitdir: ../.git/modules/group/m${i}\n`)
    }
    const facts = shown(survey('many'))
    expect(facts.protect).toEqual(['many/.git/config', 'many/.git/hooks', 'many/.git/modules'])
    expect(facts.watch.filter(w => w.endsWith('git-pointer'))).toHaveLength(20)
    expect(facts.warnings).toBe(1)
  })

  test('a submodule cannot be hidden: among many directories, too deep, or behind a link', () => {
    for (const [name, hide] of [
      ['crowd', (dir: string) => Array.from({ length: 700 }, (_, i) => mkdirSync(`${dir}/a${i}`))],
      ['deep', (dir: string) => mkdirSync(`${dir}/${'a/'.repeat(12)}`, { recursive: true })],
    ] as const) {
      const modules = fresh(`${name}/.git/modules`)
      hide(modules)
      expect(shown(survey(name)).protect).toContain(`${name}/.git/modules`)
    }
    fresh('veiled/.git/modules')
    writeFileSync(`${fresh('veiled/x/lib')}/HEAD`, 'ref: refs/heads/main\n')
    symlinkSync('../../x', `${base}/veiled/.git/modules/libs`)
    symlinkSync('../y', `${base}/veiled/.git/worktrees`)
    const facts = shown(survey('veiled'))
    expect(facts.protect).toContain('veiled/x')
    expect(facts.watch).toEqual(
      expect.arrayContaining([
        'veiled/.git/modules/libs link',
        'veiled/.git/worktrees link',
        'veiled/y nothing',
      ]),
    )
  })
  test('objects borrowed from elsewhere are warned of', () => {
    git(base, 'clone', '-q', '--shared', 'lib', 'borrower')
    expect(survey('borrower').warnings.join()).toContain('alternates')
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

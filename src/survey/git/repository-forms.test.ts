import { describe, expect, test } from 'bun:test'
import { linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { base, fresh, git, HOME, shown, survey } from '../../../test/repository-fixture.ts'
import { surveyRepository } from './repository.ts'

describe('other forms', () => {
  test('a .git that is a link is watched and not followed', () => {
    const dir = fresh('linkgit')
    symlinkSync(`${base}/lib/.git`, `${dir}/.git`)
    const facts = surveyRepository(dir, { home: HOME, ownRepository: true, stateDir: '/proc/nonexistent' })
    expect(facts).toMatchObject({ kind: 'refused', git: undefined, protect: [] })
    expect(facts.watch).toEqual([
      { path: `${dir}/.git`, root: dir, rule: { kind: 'link', text: `${base}/lib/.git` } },
      { path: `${dir}/HEAD`, root: dir, rule: { kind: 'nothing' } },
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

  test('relative paths in settings are protected in each working tree: of worktrees, and of submodules', () => {
    git(base, 'clone', '-q', 'main', 'trees')
    const dir = `${base}/trees`
    git(dir, 'submodule', '--quiet', 'add', `${base}/lib`, 'libs/lib')
    git(dir, 'worktree', 'add', '-q', 'inner', '-b', 'inner')
    git(dir, 'config', 'core.hooksPath', 'hooks')
    git(dir, 'config', 'extensions.worktreeConfig', 'true')
    git(`${dir}/inner`, 'config', '--worktree', 'include.path', '../../../inner/settings')
    git(`${dir}/libs/lib`, 'config', 'core.hooksPath', 'own-hooks')
    // It moves `core.worktree` to `config.worktree`.
    git(`${dir}/libs/lib`, 'sparse-checkout', 'set', 'some')
    writeFileSync(`${base}/every.gitconfig`, '[core]\nhooksPath = team\n')
    const facts = shown(survey('trees', { userConfigs: [`${base}/every.gitconfig`] }))
    expect(facts.protect).toContain('trees/libs/lib/.git')
    expect(facts.watch).toEqual(
      [
        ...['trees', 'trees/inner', 'trees/libs/lib'].map(top => `${top}/team nothing`),
        ...['hooks', 'inner/hooks', 'inner/settings', 'libs/lib/own-hooks'].map(it => `trees/${it} nothing`),
      ].sort(),
    )
  })

  test('settings behind a link: git does not work inside, and what they lead to is protected', () => {
    git(base, 'init', '-q', 'behind')
    const file = `${base}/behind.gitconfig`
    renameSync(`${base}/behind/.git/config`, file)
    symlinkSync(file, `${base}/behind/.git/config`)
    git(`${base}/behind`, 'config', '--file', file, 'core.hooksPath', 'hooks')
    const facts = survey('behind')
    expect(shown(facts)).toMatchObject({
      git: undefined,
      protect: ['behind/.git'],
      watch: ['behind/hooks nothing'],
    })
    expect(facts.warnings.join()).toContain('replace it by what it names')
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

  test('hooks and settings of a template for new repositories are held, its other files are not', () => {
    const dir = fresh('template')
    mkdirSync(`${dir}/git/hooks`, { recursive: true })
    for (const name of ['description', 'config']) writeFileSync(`${dir}/git/${name}`, '')
    writeFileSync(`${base}/templates`, '[init]\ntemplateDir = ~/template/git\n')
    const facts = shown(survey('template', { home: base, userConfigs: [`${base}/templates`] }))
    expect(facts.protect.toSorted()).toEqual(['template/git/config', 'template/git/hooks'])
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
    expect(facts.watch.filter(w => !/\.git|HEAD/.test(w))).toEqual([
      'places/.claude link',
      'places/.cursor link',
      'places/.kiro/hooks nothing',
      'places/.zed link',
      'places/later nothing',
    ])
  })
})

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { emptyModule } from '../../src/plan/git-steps.ts'
import type { HostPath } from '../../src/policy/files/path.ts'
import { heldCommits } from '../../src/repository/consent/held-commits.ts'
import { OwnRepository } from '../../src/repository/own-repository.ts'
import {
  makeModules,
  newSubmodules,
  setAsideLeft,
} from '../../src/repository/submodules/accept-submodules.ts'
import { syncAll } from '../../src/repository/sync-all.ts'
import { TemporaryRepository } from '../temporary-repository.ts'
import { TwoRepositories } from './two-repositories.ts'

const DONE = { isComplete: true, hasFailed: false, lines: [] }

/** The host's repository has submodules at these places. */
function withSubmodules(...names: readonly string[]): TwoRepositories & { library: TemporaryRepository } {
  const library = new TemporaryRepository()
  library.commit('lib')
  const two = Object.assign(new TwoRepositories(), { library })
  two.host.commit('one')
  for (const name of names) two.host.git('submodule', '--quiet', 'add', library.top, name)
  two.host.git('commit', '-q', '-m', 'submodules')
  return two
}

/** In a submodule's working tree, with the sandbox's git directory of it. Returns the commit. */
function commitIn(two: TwoRepositories, module: string, tree: string, file: string): string {
  const at = (...args: string[]) => two.insideAt(`modules/${module}`, `${two.host.top}/${tree}`, ...args)
  two.host.write(`${tree}/${file}`, file)
  at('add', file)
  at('commit', '-q', '-m', `inside ${file}`)
  return at('rev-parse', 'HEAD')
}

describe('submodules', () => {
  test.each(['sha1', 'sha256'])('in submodules: a commit at each level comes over (%s)', async format => {
    const init = [`--object-format=${format}`]
    using inner = new TemporaryRepository(init)
    inner.commit('inner')
    using middle = new TemporaryRepository(init)
    middle.commit('middle')
    middle.git('submodule', '--quiet', 'add', inner.top, 'deep/inner')
    middle.git('commit', '-q', '-m', 'a submodule')
    using two = new TwoRepositories(init)
    two.host.commit('one')
    two.host.git('submodule', '--quiet', 'add', middle.top, 'libs/middle')
    two.host.git('commit', '-q', '-m', 'a submodule')
    two.host.git('submodule', '--quiet', 'update', '--init', '--recursive')
    two.host.at('libs/middle/deep/inner', 'switch', '-q', 'main')
    two.start()
    const [top, nested] = ['libs/middle', 'libs/middle/modules/deep/inner']
    const id = commitIn(two, nested, `${top}/deep/inner`, 'new')
    two.insideAt(
      `modules/${top}`,
      `${two.host.top}/${top}`,
      'update-index',
      '--cacheinfo',
      `160000,${id},deep/inner`,
    )
    const above = commitIn(two, top, top, 'new')
    two.inside('update-index', '--cacheinfo', `160000,${above},${top}`)
    two.inside('commit', '-q', '-m', 'all of it')
    expect(await two.sync()).toEqual(DONE)
    expect(two.host.git('submodule', 'status', '--recursive').split('\n')).toEqual([
      ` ${above} ${top} (heads/main)`,
      ` ${id} ${top}/deep/inner (heads/main)`,
    ])
    expect(two.host.git('status', '--porcelain')).toBe('')
    for (const place of ['', top, `${top}/deep/inner`]) two.host.at(place, 'fsck', '--strict')
  })

  test.each(['its own', "another submodule's"])(
    'added in a submodule, with %s objects: with consent, the host has a repository for it',
    async whose => {
      using two = withSubmodules('lib')
      using _library = two.library
      two.start()
      // As `git submodule add` inside a submodule does it.
      const tree = `${two.host.top}/lib/new`
      const [dir, below] = [`${two.own}/modules/lib/modules/new`, `${two.host.dir}/modules/lib/modules/new`]
      mkdirSync(`${two.own}/modules/lib/modules`)
      two.host.git('clone', '-q', '--no-local', '--separate-git-dir', dir, two.library.top, tree)
      const set = (...args: string[]) => two.host.git('config', '--file', `${dir}/config`, ...args)
      set('core.worktree', '../../../../../lib/new')
      writeFileSync(`${tree}/.git`, `gitdir: ${below}\n`)
      const id = two.host.git(`--git-dir=${dir}`, `--work-tree=${tree}`, 'rev-parse', 'HEAD')
      // As a clone of a submodule's working tree does.
      if (whose !== 'its own') {
        rmSync(`${dir}/objects`, { recursive: true })
        mkdirSync(`${dir}/objects/info`, { recursive: true })
        writeFileSync(`${dir}/objects/info/alternates`, `${two.options.git.submodules[0]?.lentAt}/objects\n`)
      }
      const at = (...args: string[]) => two.insideAt('modules/lib', `${two.host.top}/lib`, ...args)
      at('config', '--file', `${two.host.top}/lib/.gitmodules`, 'submodule.new.path', 'new')
      at('config', '--file', `${two.host.top}/lib/.gitmodules`, 'submodule.new.url', two.library.top)
      at('add', '.gitmodules')
      at('update-index', '--add', '--cacheinfo', `160000,${id},new`)
      at('commit', '-q', '-m', 'a submodule in the submodule')
      const options = { ...two.options, entry: two.entry, dir: two.own as HostPath }
      expect((await two.sync()).lines.join()).toContain('waits for you')
      const consent = new Set((await heldCommits(options)).map(held => held.id))
      const places = await newSubmodules({ ...options, consent })
      expect(places).toEqual([tree])
      await makeModules(options, places)
      expect(setAsideLeft(options, places)).toEqual([])
      const now = { ...options, ...two.survey(), consent }
      expect((await syncAll(now)).isComplete).toBe(true)
      expect(two.host.at('lib/new', 'rev-parse', 'HEAD')).toBe(id)
      expect(two.host.at('lib', 'status', '--porcelain')).toBe('')
      // The twin: among the files of git in the submodule's repository there is no place for one.
      writeFileSync(`${tree}/.git`, `gitdir: ${two.host.dir}/modules/lib/hooks/new\n`)
      await makeModules(options, places)
      expect(existsSync(`${two.host.dir}/modules/lib/hooks/new`)).toBe(false)
      expect(setAsideLeft(options, places).join()).toContain('.git.planted-')
    },
  )

  test('added on the host while something is left inside: they work in the next run, as the others do', async () => {
    using two = withSubmodules('lib')
    using _library = two.library
    two.start()
    ;(await OwnRepository.open(two.options, 'run')).close()
    two.host.write('lib/staged', 'x')
    two.insideAt('modules/lib', `${two.host.top}/lib`, 'add', 'staged')
    for (const name of ['a', 'z']) two.host.git('submodule', '--quiet', 'add', two.library.top, name)
    two.host.git('submodule', '--quiet', 'deinit', '-f', 'z')
    const options = two.survey()
    const own = await OwnRepository.open(options, 'other')
    expect(two.insideAt('modules/lib', `${two.host.top}/lib`, 'status', '--porcelain')).toBe('A  staged')
    for (const { path, lentAt } of options.git.submodules) {
      const borrows = `${two.own}${path.slice(two.host.dir.length)}/objects/info/alternates`
      expect(readFileSync(borrows, 'utf8')).toBe(`${lentAt}/objects\n`)
    }
    expect(options.emptyModules).toEqual([`${two.host.top}/z`])
    const id = commitIn(two, 'a', 'a', 'new')
    const lines = await own.finish()
    expect(two.host.at('a', 'rev-parse', 'HEAD')).toBe(id)
    expect(lines.join()).not.toContain('tries again')
  })

  test('removed inside: the others come over, and the next run has it again, but not through a link', async () => {
    using two = withSubmodules('lib')
    using _library = two.library
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    rmSync(`${two.own}/modules/lib`, { recursive: true })
    const id = two.commitInside('two')
    expect((await own.finish()).join()).toContain('modules/lib is no repository any more in the sandbox')
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    const next = await OwnRepository.open(two.options, 'other')
    expect(two.insideAt('modules/lib', `${two.host.top}/lib`, 'status', '--porcelain')).toBe('')
    two.host.write('staged', 'x')
    two.inside('add', 'staged')
    await next.finish()
    rmSync(`${two.own}/modules`, { recursive: true })
    const elsewhere = `${two.host.base}/elsewhere`
    two.host.git('init', '-q', elsewhere)
    symlinkSync(elsewhere, `${two.own}/modules`)
    const last = await OwnRepository.open(two.options, 'third')
    expect(existsSync(`${elsewhere}/lib`)).toBe(false)
    expect((await last.finish()).join()).toContain('this run got a new copy')
  })

  test('checked out inside alone: they stay there, until the host checks them out and gets the commits', async () => {
    using two = withSubmodules('lib')
    using _library = two.library
    two.host.git('submodule', '--quiet', 'deinit', '-f', 'lib')
    rmSync(`${two.host.dir}/modules`, { recursive: true })
    two.start()
    const own = await OwnRepository.open(two.options, 'run')
    const place = emptyModule(own.dir, `${two.host.top}/lib`)
    const made = `${two.own}/modules/lib`
    mkdirSync(`${two.own}/modules`)
    two.host.git('clone', '-q', '--no-local', '--separate-git-dir', made, two.library.top, place)
    const at = (...args: string[]) => two.host.git(`--git-dir=${made}`, `--work-tree=${place}`, ...args)
    at('switch', '-q', '-c', 'fix')
    at('commit', '-q', '--allow-empty', '-m', 'in the submodule')
    const id = at('rev-parse', 'HEAD')
    const top = two.commitInside('two')
    expect((await own.finish()).join()).toContain('alone stay in it (lib)')
    expect(two.host.git('rev-parse', 'main')).toBe(top)
    const next = await OwnRepository.open(two.options, 'next')
    expect(at('rev-parse', 'HEAD')).toBe(id)
    expect((await next.finish()).join()).toContain('git submodule update --init lib')
    two.host.git('submodule', '--quiet', 'update', '--init', 'lib')
    const last = await OwnRepository.open(two.survey(), 'last')
    expect(await last.finish()).toEqual([])
    expect(two.host.at('lib', 'rev-parse', 'fix')).toBe(id)
    expect(existsSync(made)).toBe(false)
  })
})

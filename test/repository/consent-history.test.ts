/** Each new commit is compared with its parents: what comes and goes on the way, renames, merges, stashes, submodules. */
import { describe, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { tryLock } from '../../src/config/lock.ts'
import { heldCommits, rememberShown, shownCommits } from '../../src/repository/consent/held-commits.ts'
import { holdStopped } from '../../src/repository/submodules/accept-submodules.ts'
import { TemporaryRepository, tryGit } from '../temporary-repository.ts'
import { entry, put } from './evil-objects.ts'
import { SANDBOX, TwoRepositories } from './two-repositories.ts'

const WHO = 'a <a@example.com> 1700000000 +0000'
const TEXT = 'line\n'.repeat(20)

/** `old` has no protected file. `main` has one. */
function withHistory(): TwoRepositories {
  const two = new TwoRepositories()
  two.host.commit('one')
  two.host.git('branch', 'old')
  two.host.commit('.envrc', TEXT)
  return two.start(two.host.top, [`${two.host.top}/.envrc`])
}

const treeOf = (two: TwoRepositories, ...entries: readonly Buffer[]): string =>
  put(two, 'tree', Buffer.concat(entries))

function commitOf(two: TwoRepositories, tree: string, ...parents: readonly string[]): string {
  const above = parents.map(parent => `parent ${parent}\n`).join('')
  return put(two, 'commit', `tree ${tree}\n${above}author ${WHO}\ncommitter ${WHO}\n\nx\n`)
}

const has = (two: TwoRepositories, ref: string): boolean =>
  tryGit(two.host.top, ['rev-parse', '-q', '--verify', ref]).code === 0

describe('each new commit is compared with each of its parents', () => {
  test('a merge of a history that has a protected file by another name; one of an own branch is fine', async () => {
    using two = withHistory()
    const [main, old] = [two.inside('rev-parse', 'main'), two.inside('rev-parse', 'old')]
    const [mainTree, blob] = [two.inside('rev-parse', 'main^{tree}'), two.inside('rev-parse', 'main:.envrc')]
    const renamed = treeOf(two, entry('100644', 'env', blob))
    const bases = { root: commitOf(two, renamed), older: commitOf(two, renamed, old) }
    two.inside('branch', 'fine', commitOf(two, mainTree, main, old))
    two.inside('branch', 'by-root', commitOf(two, mainTree, main, bases.root))
    two.inside('branch', 'by-older', commitOf(two, mainTree, main, bases.older))
    two.inside('branch', 'octopus', commitOf(two, mainTree, main, old, bases.older))
    two.inside('branch', 'reverted', commitOf(two, two.inside('rev-parse', 'old^{tree}'), main, old))
    two.inside('branch', 'switched', main)
    const lines = (await two.sync()).lines.join('\n')
    for (const name of ['by-root', 'by-older', 'octopus', 'reverted']) {
      expect(lines).toContain(`${name} waits for you`)
      expect([name, has(two, `refs/heads/${name}`)]).toEqual([name, false])
    }
    for (const name of ['fine', 'switched'])
      expect([name, has(two, `refs/heads/${name}`)]).toEqual([name, true])
  })

  test('a stash on another history cannot carry a change into a protected file; a plain one comes over', async () => {
    using two = withHistory()
    const [old, blob] = [two.inside('rev-parse', 'old'), two.inside('rev-parse', 'main:.envrc')]
    const evil = treeOf(two, entry('100644', 'env', put(two, 'blob', `${TEXT}evil\n`)))
    const base = commitOf(two, treeOf(two, entry('100644', 'env', blob)), old)
    const index = commitOf(two, two.inside('rev-parse', `${base}^{tree}`), base)
    const untracked = commitOf(two, treeOf(two, entry('100644', 'new', blob)))
    two.host.write('one', 'changed')
    two.host.write('untracked', 'x')
    two.inside('stash', '-q', '-u')
    const plain = two.inside('rev-parse', 'stash')
    two.inside('stash', 'store', commitOf(two, evil, base, index))
    two.inside('stash', 'store', commitOf(two, evil, base, index, untracked, base))
    const lines = (await two.sync()).lines.join('\n')
    expect(lines).toContain('(.envrc)')
    expect(lines).toContain('it is not a stash')
    expect(two.host.git('stash', 'list', '--format=%H')).toBe(plain)
    // As a branch, the commit of the stash is a merge with a history without the protected file.
    two.inside('branch', 'stashed', plain)
    expect((await two.sync()).lines.join('\n')).toContain('stashed waits for you')
  })

  test('pen git log lists what a checkout would write, also from a commit that the host has', async () => {
    using two = withHistory()
    two.host.git('switch', '-q', '-c', 'theirs')
    two.host.commit('.envrc', 'theirs')
    two.host.git('switch', '-q', 'main')
    two.start(
      two.host.top,
      ['.envrc', '.vimrc'].map(name => `${two.host.top}/${name}`),
    )
    two.inside('symbolic-ref', 'HEAD', 'refs/heads/theirs')
    two.inside('read-tree', 'HEAD')
    two.inside('update-index', '--add', '--cacheinfo', `100644,${put(two, 'blob', 'x')},.vimrc`)
    two.inside('commit', '-q', '-m', 'brings .vimrc alone')
    await two.sync()
    const held = await heldCommits({ ...two.options, entry: two.entry })
    expect(held.map(({ paths }) => [...paths].sort())).toEqual([['.envrc', '.vimrc']])
  })

  test('pen git log lists all that waits, and does not count as shown what it leaves out', async () => {
    using two = withHistory()
    const before = two.inside('rev-parse', 'main')
    two.inside('switch', '-q', '--detach')
    for (const text of ['evil', TEXT]) {
      two.inside('update-index', '--cacheinfo', `100644,${put(two, 'blob', text)},.envrc`)
      two.inside('commit', '-q', '-m', `with ${text.slice(0, 4)}`)
    }
    two.inside('switch', '-q', '-C', 'main')
    two.commitInside('plain')
    await two.sync()
    expect(two.host.git('rev-parse', 'main')).toBe(before)
    const [held, ...others] = await heldCommits({ ...two.options, entry: two.entry })
    expect(others).toEqual([])
    expect(held?.commits.map(line => line.replace(/^\w+ /, ''))).toEqual(['a: with evil', 'a: with line'])
    expect([held?.paths, held?.more]).toEqual([['.envrc'], 0])
    const { stateDir } = two.options.world.sandbox
    if (held === undefined) throw new Error('nothing waits')
    rememberShown(stateDir, [held, { ...held, id: 'other', more: 1 }])
    expect([...shownCommits(stateDir)]).toEqual([held.id])
    await two.sync(true)
    expect(two.host.git('rev-parse', 'main')).toBe(held.id)
  })
})

test('a submodule: a protected file in it, and a pointer to a commit that waits; others come over', async () => {
  using library = new TemporaryRepository()
  library.commit('hooks/run', 'ok')
  using two = new TwoRepositories()
  two.host.commit('one')
  two.host.git('submodule', '--quiet', 'add', library.top, 'lib')
  two.host.git('commit', '-q', '-m', 'a submodule')
  two.start(two.host.top, [`${two.host.top}/lib/hooks`])
  const tree = `${two.host.top}/lib`
  const inLib = (...args: readonly string[]): string => two.insideAt('modules/lib', tree, ...args)
  const point = (name: string, id: string): string => {
    two.inside('switch', '-q', '-c', name, 'main')
    two.inside('update-index', '--cacheinfo', `160000,${id},lib`)
    two.inside('commit', '-q', '-m', name)
    return two.inside('rev-parse', 'HEAD')
  }
  inLib('commit', '-q', '--allow-empty', '-m', 'fine')
  const fine = point('fine', inLib('rev-parse', 'HEAD'))
  inLib('switch', '-q', '-c', 'evil')
  inLib('update-index', '--cacheinfo', `100644,${put(two, 'blob', 'evil')},hooks/run`)
  const blob = two.tryInside(['hash-object', '-w', '--stdin'], {
    record: 'modules/lib',
    workTree: tree,
    input: 'evil',
  })
  expect(blob.code).toBe(0)
  inLib('commit', '-q', '-m', 'evil')
  point('evil', inLib('rev-parse', 'HEAD'))
  point('unknown', '1'.repeat(40))
  two.inside('switch', '-q', '-c', 'nothing-new', 'main')
  const lines = (await two.sync()).lines.join('\n')
  expect(lines).toContain(
    'evil of modules/lib waits for you: its commits change what the sandbox may not write',
  )
  expect(lines).toContain('(hooks/run)')
  for (const name of ['evil', 'unknown']) {
    expect(lines).toContain(`git: ${name} waits for you`)
    expect([name, has(two, `refs/heads/${name}`)]).toEqual([name, false])
  }
  expect(two.host.git('rev-parse', 'fine')).toBe(fine)
  expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/nothing-new')
  expect(
    two.host.git('for-each-ref', '--format=%(refname)', `refs/pen/${SANDBOX}/held`).split('\n'),
  ).toHaveLength(2)
})

test('a new submodule is accepted while no sandbox of the project runs, and none takes a lock meanwhile', () => {
  using two = withHistory()
  const { stateDir } = two.options.world.sandbox
  mkdirSync(`${stateDir}/git/other`)
  const running = tryLock(`${stateDir}/git/other.lock`)
  expect(() => holdStopped([stateDir])).toThrow('while no sandbox of the project runs')
  running?.release()
  const held = holdStopped([stateDir])
  expect(held).toHaveLength(2)
  expect(tryLock(`${stateDir}/git/other.lock`)).toBeUndefined()
  for (const lock of held) lock.release()
  expect(holdStopped([stateDir]).map(lock => lock.release())).toHaveLength(2)
})

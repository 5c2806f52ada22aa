import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { heldCommits } from '../../src/repository/consent/held-commits.ts'
import { tryGit } from '../temporary-repository.ts'
import { branch, entry, put, started } from './evil-objects.ts'
import { SANDBOX, TwoRepositories } from './two-repositories.ts'

describe('what the host would enter or run waits for consent', () => {
  test('a new gitlink, until the user accepts it', async () => {
    using two = started()
    const before = two.host.git('rev-parse', 'main')
    two.inside('update-index', '--add', '--cacheinfo', `160000,${before},planted`)
    two.inside('commit', '-q', '-m', 'a gitlink')
    const id = two.inside('rev-parse', 'HEAD')
    expect((await two.sync()).lines.join()).toContain('planted')
    expect(two.host.git('rev-parse', 'main')).toBe(before)
    expect(two.host.git('ls-files')).toBe('one')
    expect(two.host.git('rev-parse', `refs/pen/${SANDBOX}/held/heads/main`)).toBe(id)
    await two.sync(true)
    expect(two.host.git('rev-parse', 'main')).toBe(id)
    expect(two.host.git('for-each-ref', 'refs/pen')).toBe('')
  })

  test.each(['symbolic-ref', 'detached'])('a gitlink on a branch that crossed before, by %s', async how => {
    using two = started()
    const before = two.host.git('rev-parse', 'main')
    branch(two, put(two, 'tree', entry('160000', 'planted', before)), 'refs/heads/other')
    await two.sync()
    const id = two.inside('rev-parse', 'other')
    if (how === 'detached') writeFileSync(`${two.own}/HEAD`, `${id}\n`)
    else writeFileSync(`${two.own}/HEAD`, 'ref: refs/heads/other\n')
    await two.sync()
    expect(two.host.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    expect(two.host.git('ls-files')).toBe('one')
  })

  test('a change of a protected file, unless it is of the user; and a file that is new there', async () => {
    using two = new TwoRepositories()
    const before = two.host.commit('.envrc', 'first')
    two.host.write('.envrc', 'mine')
    two.host.write('.npmrc', 'mine')
    two.start(
      two.host.top,
      ['.envrc', '.npmrc', '.vscode'].map(name => `${two.host.top}/${name}`),
    )
    two.inside('add', '.envrc')
    two.inside('commit', '-q', '-m', 'the file of the user')
    await two.sync()
    const mine = two.inside('rev-parse', 'HEAD')
    expect(two.host.git('rev-parse', 'main')).toBe(mine)
    expect(mine).not.toBe(before)
    two.inside('add', '.npmrc')
    two.inside('commit', '-q', '-m', 'a file that no commit has')
    expect((await two.sync()).lines.join()).toContain('.npmrc')
    const blob = put(two, 'blob', 'evil')
    two.inside('update-index', '--add', '--cacheinfo', `100644,${blob},.vscode/tasks.json`)
    two.inside('commit', '-q', '-m', 'evil')
    expect((await two.sync()).lines.join()).toContain('.vscode/tasks.json')
    expect(two.host.git('rev-parse', 'main')).toBe(mine)
  })

  test('a commit that removes a protected file; one that removes another file does not', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.host.commit('plain')
    const before = two.host.commit('.envrc')
    two.start(two.host.top, [`${two.host.top}/.envrc`])
    two.inside('rm', '-q', '--cached', '.envrc')
    two.inside('commit', '-q', '-m', 'removed')
    expect((await two.sync()).lines.join()).toContain('main waits for you')
    expect(two.host.git('rev-parse', 'main')).toBe(before)
    two.inside('reset', '-q', 'HEAD~1')
    two.inside('rm', '-q', '--cached', 'plain')
    two.inside('commit', '-q', '-m', 'plain removed')
    await two.sync()
    expect(two.host.git('rev-parse', 'main')).toBe(two.inside('rev-parse', 'main'))
  })

  test.each([
    ['.envrc', false],
    ['plain', true],
  ])('a merge that changes a file which the host renamed to %s', async (renamed, isMerged) => {
    using two = new TwoRepositories()
    const text = 'line\n'.repeat(20)
    two.host.commit('setup', text)
    two.start(two.host.top, [`${two.host.top}/.envrc`])
    two.commitInside('setup', `${text}evil\n`)
    two.host.git('mv', 'setup', renamed)
    two.host.git('commit', '-q', '-m', 'renamed')
    const outer = two.host.git('rev-parse', 'main')
    await two.sync()
    const line = (await two.merge()).join()
    expect([line, two.host.git('rev-parse', 'main') !== outer]).toEqual([line, isMerged])
    expect(line).toContain(isMerged ? "main has the sandbox's commits" : 'main is not merged')
    expect(line.includes('(.envrc)')).toBe(!isMerged)
  })

  test('a stash with such a file', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start(two.host.top, [`${two.host.top}/.envrc`])
    two.host.write('.envrc', 'evil')
    two.inside('stash', '-u')
    expect((await two.sync()).lines.join()).toContain('.envrc')
    expect(tryGit(two.host.top, ['stash', 'list']).stdout).toBe('')
  })

  test.each(['tags/v9', 'notes/evil', 'heads/evil'])(
    'such a file by refs/%s; another one does not wait',
    async ref => {
      using two = new TwoRepositories()
      two.host.commit('one')
      two.start(two.host.top, [`${two.host.top}/.envrc`])
      const fine = branch(
        two,
        put(two, 'tree', entry('100644', 'fine', put(two, 'blob', 'x'))),
        `refs/${ref}`,
      )
      await two.sync()
      expect(two.host.git('rev-parse', `refs/${ref}`)).toBe(fine)
      const evil = put(two, 'tree', entry('100644', '.envrc', put(two, 'blob', 'x')))
      const id = branch(two, evil, `refs/${ref}-2`)
      expect((await two.sync()).lines.join()).toContain('.envrc')
      expect(tryGit(two.host.top, ['rev-parse', '-q', '--verify', `refs/${ref}-2`]).code).toBe(1)
      await two.sync(true)
      expect(two.host.git('rev-parse', `refs/${ref}-2`)).toBe(id)
    },
  )

  test('a commit that brings such a file and one that removes it again', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start(two.host.top, [`${two.host.top}/.envrc`])
    const before = two.host.git('rev-parse', 'main')
    const blob = put(two, 'blob', 'evil')
    two.inside('update-index', '--add', '--cacheinfo', `100644,${blob},.envrc`)
    two.inside('commit', '-q', '-m', 'evil')
    two.inside('tag', '-a', '-m', 'release', 'v2')
    two.inside('rm', '-q', '--cached', '.envrc')
    two.inside('commit', '-q', '-m', 'harmless')
    const lines = (await two.sync()).lines.join()
    expect(lines).toContain('main waits for you')
    expect(lines).toContain('v2 waits for you')
    expect(two.host.git('rev-parse', 'main')).toBe(before)
    expect(two.host.git('tag')).toBe('')
  })

  test('a tag of a file, of a tree and of a tag come over', async () => {
    using two = started()
    const tree = two.inside('rev-parse', 'HEAD^{tree}')
    two.inside('tag', '-a', '-m', 'x', 'of-file', put(two, 'blob', 'a key'))
    two.inside('tag', 'of-tree', tree)
    two.inside('tag', '-a', '-m', 'x', 'of-tag', 'of-file')
    expect((await two.sync()).lines).toEqual([])
    expect(two.host.git('tag')).toBe('of-file\nof-tag\nof-tree')
  })

  test('a stash on a commit with such a file: git stash branch would write it', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start(two.host.top, [`${two.host.top}/.envrc`])
    const before = two.inside('rev-parse', 'main')
    const blob = put(two, 'blob', 'evil')
    two.inside('update-index', '--add', '--cacheinfo', `100644,${blob},.envrc`)
    two.inside('commit', '-q', '-m', 'evil')
    two.host.write('one', 'changed')
    const stash = two.inside('stash', 'create')
    two.inside('reset', '-q', '--hard', before)
    two.inside('stash', 'store', stash)
    expect((await two.sync()).lines.join()).toContain('.envrc')
    expect(tryGit(two.host.top, ['stash', 'list']).stdout).toBe('')
  })

  test('and its path is readable in any language', async () => {
    using two = new TwoRepositories()
    two.host.commit('one')
    two.start(two.host.top, [`${two.host.top}/.vscode`])
    branch(
      two,
      put(
        two,
        'tree',
        entry(
          '40000',
          '.vscode',
          put(
            two,
            'tree',
            entry('100644', Buffer.from('größe\x1b').toString('latin1'), put(two, 'blob', 'x')),
          ),
        ),
      ),
    )
    const shown = '.vscode/größe\\u001b'
    expect((await two.sync()).lines.join()).toContain(shown)
    const [held] = await heldCommits({ ...two.options, entry: two.entry })
    expect(held?.paths).toContain(shown)
  })
})

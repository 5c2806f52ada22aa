import { describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { TemporaryRepository } from '../../../test/temporary-repository.ts'
import { foldRefs } from './fold-refs.ts'

function fold(repository: TemporaryRepository) {
  let packed = Buffer.alloc(0)
  try {
    packed = readFileSync(`${repository.dir}/packed-refs`)
  } catch {
    // no ref is packed yet
  }
  return foldRefs(repository.dir, packed)
}

/** What git lists, with peeled tags, when all refs are in this file. */
function listed(repository: TemporaryRepository, packed: Buffer): string {
  const copy = `${repository.base}/copy`
  mkdirSync(`${copy}/refs`, { recursive: true })
  mkdirSync(`${copy}/objects/info`, { recursive: true })
  writeFileSync(`${copy}/objects/info/alternates`, `${repository.dir}/objects\n`)
  writeFileSync(`${copy}/HEAD`, readFileSync(`${repository.dir}/HEAD`))
  writeFileSync(`${copy}/packed-refs`, packed)
  return repository.with(copy, 'show-ref', '-d')
}

describe('the folded refs', () => {
  test('are the same for git, with annotated tags peeled, whether packed, loose or both', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    repository.git('tag', '-a', '-m', 'annotated', 'v1')
    repository.git('branch', 'z/deep/branch')
    expect(listed(repository, fold(repository).packed)).toBe(repository.git('show-ref', '-d'))
    repository.git('pack-refs', '--all')
    expect(listed(repository, fold(repository).packed)).toBe(repository.git('show-ref', '-d'))
    repository.commit('two')
    repository.git('tag', '-f', '-a', '-m', 'again', 'v1')
    repository.git('tag', '-a', '-m', 'more', 'v2')
    repository.git('tag', '-a', '-m', 'a tag of a tag', 'v3', 'v2')
    expect(listed(repository, fold(repository).packed)).toBe(repository.git('show-ref', '-d'))
  })

  test('keep the header with peeled tags when nothing is loose, and drop the claim otherwise', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    repository.git('tag', '-a', '-m', 'annotated', 'v1')
    repository.git('pack-refs', '--all')
    expect(fold(repository).packed).toEqual(readFileSync(`${repository.dir}/packed-refs`))
    repository.git('branch', 'loose')
    const text = fold(repository).packed.toString()
    expect(text.split('\n')[0]).toBe('# pack-refs with: sorted ')
    expect(text).not.toContain('^')
  })

  test('are sorted by bytes, as git searches them', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    for (const name of ['b', 'B', 'a-b', 'a.b', 'a/b', 'é', 'z', '~x'.slice(1), '😀', '\uffee'])
      repository.git('branch', name)
    const names = fold(repository)
      .packed.toString('latin1')
      .split('\n')
      .slice(1, -1)
      .map(line => line.slice(41))
    expect(names).toEqual([...names].sort((a, b) => Buffer.compare(bytes(a), bytes(b))))
    expect(listed(repository, fold(repository).packed)).toBe(repository.git('show-ref', '-d'))
  })

  test('have a loose ref in place of the packed one', () => {
    using repository = new TemporaryRepository()
    repository.commit('one')
    repository.git('pack-refs', '--all')
    const newer = repository.commit('two')
    expect(fold(repository).packed.toString()).toContain(`${newer} refs/heads/main\n`)
    expect(
      fold(repository)
        .packed.toString()
        .match(/refs\/heads\/main/g),
    ).toHaveLength(1)
  })

  test('of SHA-256 have 64 digits', () => {
    using repository = new TemporaryRepository(['--object-format=sha256'])
    const id = repository.commit('one')
    expect(id).toHaveLength(64)
    expect(fold(repository).packed.toString()).toContain(`${id} refs/heads/main\n`)
  })

  test('of a repository without commits are empty', () => {
    using repository = new TemporaryRepository()
    expect(fold(repository)).toEqual({ packed: Buffer.alloc(0), files: new Map() })
  })
})

describe('refs that stay files', () => {
  test('are symbolic ones, and those of one worktree', () => {
    using repository = new TemporaryRepository()
    const id = repository.commit('one')
    repository.git('symbolic-ref', 'refs/heads/alias', 'refs/heads/main')
    repository.git('update-ref', 'refs/remotes/origin/main', id)
    repository.git('symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/main')
    for (const name of ['bisect/bad', 'worktree/x', 'rewritten/y'])
      repository.git('update-ref', `refs/${name}`, id)
    const { packed, files } = fold(repository)
    expect(Object.fromEntries([...files].map(([name, text]) => [name, text.toString().trim()]))).toEqual({
      'refs/heads/alias': 'ref: refs/heads/main',
      'refs/remotes/origin/HEAD': 'ref: refs/remotes/origin/main',
      'refs/bisect/bad': id,
      'refs/worktree/x': id,
      'refs/rewritten/y': id,
    })
    expect(packed.toString().match(/ refs\/\S+/g)).toEqual([' refs/heads/main', ' refs/remotes/origin/main'])
  })

  test('are not broken ones, locks, links, pipes, and symbolic refs that lead out of refs', () => {
    using repository = new TemporaryRepository()
    const id = repository.commit('one')
    const put = (name: string, text: string) => writeFileSync(`${repository.dir}/refs/heads/${name}`, text)
    put('empty', '')
    put('short', id.slice(1))
    put('upper', id.toUpperCase())
    put('two', `${id}\n${id}\n`)
    put('long', `${id}${' '.repeat(5000)}`)
    put('out', 'ref: ../../../etc/passwd\n')
    put('head', 'ref: HEAD\n')
    put('main.lock', id)
    put('zeros\n', id.slice(2))
    writeFileSync(`${repository.base}/target`, id)
    symlinkSync(`${repository.base}/target`, `${repository.dir}/refs/heads/link`)
    symlinkSync(repository.base, `${repository.dir}/refs/heads/linked`)
    Bun.spawnSync(['mkfifo', `${repository.dir}/refs/heads/pipe`])
    const { packed, files } = fold(repository)
    expect(packed.toString()).toBe(`# pack-refs with: sorted \n${id} refs/heads/main\n`)
    expect([...files]).toEqual([])
  })

  test('a name with a line break cannot add a line to the packed refs', () => {
    using repository = new TemporaryRepository()
    const id = repository.commit('one')
    mkdirSync(`${repository.dir}/refs/heads/x\n${id} refs`, { recursive: true })
    renameSync(`${repository.dir}/refs/heads/main`, `${repository.dir}/refs/heads/x\n${id} refs/forged`)
    const lines = fold(repository).packed.toString().split('\n')
    expect(lines.filter(line => line.endsWith(' refs/forged'))).toEqual([])
  })
})

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

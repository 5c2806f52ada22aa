import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gitlinks, isWithoutGitlinks, parseIndex } from './gitlinks.ts'

let base = ''
let ws = ''
const git = (cwd: string, ...words: string[]): void => {
  const env = {
    PATH: '/usr/bin:/bin',
    HOME: ws,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@example.com',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@example.com',
  }
  const ran = Bun.spawnSync(['git', '-c', 'init.defaultBranch=main', ...words], { cwd, env, stderr: 'pipe' })
  if (ran.exitCode !== 0) throw new Error(ran.stderr.toString())
}

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-gitlinks-')))
  ws = `${base}/ws`
  const nested = `${ws}/lib/dep`
  mkdirSync(nested, { recursive: true })
  git(ws, 'init', '-q')
  git(nested, 'init', '-q')
  git(nested, 'commit', '-q', '--allow-empty', '-m', 'one')
  git(nested, 'config', 'core.fsmonitor', './watch')
  for (const name of ['a', 'lib/aa', 'lib/dep.txt', 'lib/deep-er']) writeFileSync(`${ws}/${name}`, name)
  git(ws, 'add', '-A')
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

const index = (): Buffer => readFileSync(`${ws}/.git/index`)

describe('repositories in the index', () => {
  test('P3 leave the index unread when one has a non-UTF-8 name, which pen cannot look at', () => {
    const named = Buffer.from(index())
    const at = named.indexOf('lib/dep\0')
    named[at + 6] = 0xff
    expect(parseIndex(named)).toEqual({ paths: [], complete: false })
    const file = Buffer.from(index())
    file[file.indexOf('lib/aa\0') + 5] = 0xff
    expect(parseIndex(file)).toEqual({ paths: ['lib/dep'], complete: true })
  })

  for (const version of ['2', '3', '4'])
    test(`are found in version ${version}, and files are not`, () => {
      git(ws, 'update-index', '--index-version', version)
      expect(parseIndex(index())).toEqual({ paths: ['lib/dep'], complete: true })
    })

  test('are found in a split index', () => {
    git(ws, 'update-index', '--split-index')
    expect(gitlinks(`${ws}/.git`, '/proc/nonexistent/cache')).toEqual({ paths: ['lib/dep'], complete: true })
    git(ws, 'update-index', '--no-split-index')
    const shared = readdirSync(`${ws}/.git`).filter(name => name.startsWith('sharedindex.'))
    for (const name of shared) rmSync(`${ws}/.git/${name}`)
  })

  test('are found in the index of a linked worktree', () => {
    git(ws, 'commit', '-q', '-m', 'all')
    git(ws, 'worktree', 'add', '-q', '../linked', '-b', 'linked')
    expect(gitlinks(`${ws}/.git/worktrees/linked`, '/proc/nonexistent/cache')).toEqual({
      paths: ['lib/dep'],
      complete: true,
    })
  })

  test('are none without an index', () =>
    expect(gitlinks(`${ws}/.git/refs`, '/proc/nonexistent/cache')).toEqual({ paths: [], complete: true }))
})

describe('a broken index', () => {
  test('cut anywhere is incomplete or correct, and never throws', () => {
    const bytes = index()
    for (let length = 0; length < bytes.length; length += 3) {
      const { paths } = parseIndex(bytes.subarray(0, length))
      expect(['', 'lib/dep']).toContain(paths.join())
    }
    expect(parseIndex(bytes.subarray(0, 100)).complete).toBe(false)
  })

  test('is incomplete with a name that no path can have: each entry of version 4 would copy it', () => {
    const named = (length: number): Buffer => {
      const index = Buffer.alloc(12 + 62 + 1 + length + 1 + 20)
      index.write('DIRC')
      index.writeUInt32BE(4, 4)
      index.writeUInt32BE(1, 8)
      index.writeUInt32BE(0o100644, 12 + 24)
      index.writeUInt16BE(0xfff, 12 + 60)
      index.fill('a', 12 + 62 + 1, 12 + 62 + 1 + length)
      return index
    }
    expect([4096, 4097].map(length => parseIndex(named(length)).complete)).toEqual([true, false])
  })

  test('with any byte changed never throws', () => {
    for (let at = 0; at < index().length; at++) {
      const bytes = index()
      bytes[at] = (bytes[at] ?? 0) ^ 0xff
      expect(parseIndex(bytes).paths.length).toBeLessThan(10)
    }
  })

  test('is incomplete when it may hide a repository, and is not when it holds none', () => {
    const whole = index()
    const unknown = Buffer.concat([Buffer.from('DIRC\0\0\0\x09'), whole.subarray(8)])
    writeFileSync(`${ws}/.git/index`, unknown)
    expect(gitlinks(`${ws}/.git`, '/proc/nonexistent/cache').complete).toBe(false)
    writeFileSync(`${ws}/.git/index`, unknown.subarray(0, 12))
    expect(gitlinks(`${ws}/.git`, '/proc/nonexistent/cache')).toEqual({ paths: [], complete: true })
    writeFileSync(`${ws}/.git/index`, whole)
    expect(gitlinks(`${ws}/.git`, '/proc/nonexistent/cache')).toEqual({ paths: ['lib/dep'], complete: true })
  })
})

describe('an index that a sandbox writes', () => {
  const made = (format: 'sha1' | 'sha256', ...last: readonly string[]): string => {
    const dir = mkdtempSync(join(base, 'made-'))
    git(dir, 'init', '-q', `--object-format=${format}`)
    for (const name of ['a', 'b', 'dir/c']) {
      mkdirSync(join(dir, 'dir'), { recursive: true })
      writeFileSync(join(dir, name), name)
    }
    git(dir, 'add', '-A')
    git(dir, 'commit', '-q', '-m', 'one')
    if (last.length > 0) git(dir, ...last)
    return `${dir}/.git/index`
  }
  const link = ['update-index', '--add', '--cacheinfo'] as const

  test('is accepted with files alone, in each version and for both hash functions', () => {
    for (const version of ['2', '3', '4'])
      expect(isWithoutGitlinks(made('sha1', 'update-index', '--index-version', version), 20)).toBe(true)
    expect(isWithoutGitlinks(made('sha256'), 32)).toBe(true)
    expect(isWithoutGitlinks(made('sha1', 'rm', '-q', '-r', '.'), 20)).toBe(true)
  })

  test('P3 is refused above 64 MB, also in version 4, where few bytes make a long name', () => {
    const index = (version: 2 | 4, megabytes: number): string => {
      const [first, each] = version === 4 ? [62 + 1 + 4000 + 1, 65] : [72, 72]
      const count = Math.floor((megabytes * 1024 * 1024 - first) / each) + 1
      const bytes = Buffer.alloc(12 + first + each * (count - 1) + 20)
      bytes.write('DIRC')
      bytes.writeUInt32BE(version, 4)
      bytes.writeUInt32BE(count, 8)
      for (let i = 0, at = 12; i < count; at += i++ === 0 ? first : each) {
        bytes.writeUInt32BE(0o100644, at + 24)
        bytes.writeUInt16BE(version === 4 ? 4000 : 8, at + 60)
        if (version === 2) bytes.fill('a', at + 62, at + 70)
        else if (i === 0) bytes.fill('a', at + 63, at + 4063)
        // One character less, then another.
        else bytes.set([1, 0x62, 0], at + 62)
      }
      const file = join(base, 'large')
      writeFileSync(file, bytes)
      return file
    }
    for (const version of [2, 4] as const) {
      expect(isWithoutGitlinks(index(version, 63), 20)).toBe(true)
      expect(isWithoutGitlinks(index(version, 65), 20)).toBe(false)
    }
  })

  test('P3 is refused with a gitlink, also one whose mode has other bits', () => {
    const file = made('sha1', ...link, `160000,${'1'.repeat(40)},b2`)
    expect(isWithoutGitlinks(file, 20)).toBe(false)
    const bytes = readFileSync(file)
    const mode = bytes.indexOf(Buffer.from([0, 0, 0xe0, 0]))
    bytes.set([0, 7, 0xe1, 0xed], mode)
    writeFileSync(file, bytes)
    expect(isWithoutGitlinks(file, 20)).toBe(false)
    expect(isWithoutGitlinks(made('sha256', ...link, `160000,${'1'.repeat(64)},b2`), 32)).toBe(false)
  })

  test('P3 is refused when git would read entries from elsewhere, or pen cannot read all of it', () => {
    expect(isWithoutGitlinks(made('sha1', 'update-index', '--split-index'), 20)).toBe(false)
    const offsets = ['-c', 'index.recordEndOfIndexEntries=true', 'update-index', '--force-write-index']
    expect(isWithoutGitlinks(made('sha1', ...offsets), 20)).toBe(false)
    expect(isWithoutGitlinks(made('sha256'), 20)).toBe(false)
    const file = made('sha1')
    writeFileSync(file, readFileSync(file).subarray(0, -1))
    expect(isWithoutGitlinks(file, 20)).toBe(false)
  })
})

test('the gitlinks of a large index are cached, until the index changes', () => {
  const dir = mkdtempSync(join(tmpdir(), 'pen-gitlinks-'))
  const [index, cache] = [join(dir, 'index'), join(dir, 'cache.json')]
  // Not an index: a search of it is incomplete.
  writeFileSync(index, Buffer.alloc(2_000_000))
  writeFileSync(index, Buffer.concat([Buffer.alloc(2_000_000), Buffer.from([0, 0, 0xe0, 0])]))
  expect(gitlinks(dir, cache)).toEqual({ paths: [], complete: false })
  const stored = JSON.parse(readFileSync(cache, 'utf8')) as { key: string }
  writeFileSync(cache, JSON.stringify({ ...stored, facts: { paths: ['cached'], complete: true } }))
  expect(gitlinks(dir, cache).paths).toEqual(['cached'])
  writeFileSync(index, Buffer.alloc(2_000_001))
  expect(gitlinks(dir, cache)).toEqual({ paths: [], complete: true })
  rmSync(dir, { recursive: true })
})

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
import { changedGitlinks, parseIndex } from './gitlinks.ts'
import { describeRepository, findRepositories } from './planted-repositories.ts'

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
  ws = realpathSync(mkdtempSync(join(tmpdir(), 'pen-gitlinks-')))
  const nested = `${ws}/lib/dep`
  mkdirSync(nested, { recursive: true })
  git(ws, 'init', '-q')
  git(nested, 'init', '-q')
  git(nested, 'commit', '-q', '--allow-empty', '-m', 'one')
  git(nested, 'config', 'core.fsmonitor', './watch')
  for (const name of ['a', 'lib/aa', 'lib/dep.txt', 'lib/deep-er']) writeFileSync(`${ws}/${name}`, name)
  git(ws, 'add', '-A')
})
afterAll(() => rmSync(ws, { recursive: true, force: true }))

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
    expect(changedGitlinks(`${ws}/.git`, 0)).toEqual({ paths: ['lib/dep'], complete: true })
    git(ws, 'update-index', '--no-split-index')
    const shared = readdirSync(`${ws}/.git`).filter(name => name.startsWith('sharedindex.'))
    for (const name of shared) rmSync(`${ws}/.git/${name}`)
  })

  test('are ignored when the index is older than the run', () => {
    expect(changedGitlinks(`${ws}/.git`, Date.now() + 60_000).paths).toEqual([])
  })

  test('are reported with what a plain git status would obey, however little time there is', () => {
    const { found } = findRepositories(ws, { deadlineMs: 0, since: 0 })
    expect(found).toMatchObject([{ path: `${ws}/lib/dep`, entered: true }])
    const line = found.map(describeRepository).join()
    expect(line).toContain('WARNING')
    expect(line).toContain('core.fsmonitor=./watch')
  })

  test('are reported once, also when the search finds them, and not when the index does not list them', () => {
    const all = findRepositories(ws, { deadlineMs: 5000, since: 0 }).found
    expect(all.filter(({ path }) => path.endsWith('/dep'))).toHaveLength(1)
    git(ws, 'rm', '-qf', '--cached', 'lib/dep')
    const { found } = findRepositories(ws, { deadlineMs: 5000, since: 0 })
    expect(found).toMatchObject([{ path: `${ws}/lib/dep`, entered: false }])
    expect(found.map(describeRepository).join()).not.toContain('WARNING')
    git(ws, 'add', 'lib/dep')
  })
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

  test('with any byte changed never throws', () => {
    for (let at = 0; at < index().length; at++) {
      const bytes = index()
      bytes[at] = (bytes[at] ?? 0) ^ 0xff
      expect(parseIndex(bytes).paths.length).toBeLessThan(10)
    }
  })

  test('is reported as unread when it may hide a repository, and is not when it holds none', () => {
    const whole = index()
    writeFileSync(`${ws}/.git/index`, Buffer.concat([Buffer.from('DIRC\0\0\0\x09'), whole.subarray(8)]))
    expect(findRepositories(ws, { deadlineMs: 5000, since: 0 }).indexRead).toBe(false)
    writeFileSync(`${ws}/.git/index`, whole)
    expect(findRepositories(ws, { deadlineMs: 5000, since: 0 }).indexRead).toBe(true)
  })
})

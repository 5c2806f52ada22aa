import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseGitConfig } from './config.ts'
import { gitIdentity } from './identity.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-identity-')))
const home = join(root, 'home')
const work = join(home, 'work/project')
afterAll(() => rmSync(root, { recursive: true, force: true }))

const put = (path: string, text: string): void => {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), text)
}
const NO_SYSTEM = { GIT_CONFIG_NOSYSTEM: '1' }

/** What pen reads, and what git itself says of the same files. */
function both(env: Record<string, string> = {}, at = work): [unknown, unknown] {
  const text = gitIdentity(at, home, { ...NO_SYSTEM, ...env })
  const ours = Object.fromEntries((parseGitConfig(text ?? '') ?? []).map(({ key, value }) => [key, value]))
  const theirs = ['user.name', 'user.email'].flatMap(key => {
    const ran = spawnSync('git', ['-C', at, 'config', '--null', '--get', key], {
      env: { PATH: process.env['PATH'], HOME: home, ...NO_SYSTEM, ...env },
      encoding: 'utf8',
    })
    return ran.status === 0 ? [[key, ran.stdout.slice(0, -1)] as const] : []
  })
  return [ours, Object.fromEntries(theirs)]
}

describe('the user’s identity is what git itself reads', () => {
  beforeEach(() => {
    rmSync(home, { recursive: true, force: true })
    mkdirSync(work, { recursive: true })
    spawnSync('git', ['init', '-q', '-b', 'main', work])
  })

  const expectSame = (wanted: Record<string, string>, env: Record<string, string> = {}): void =>
    expect(both(env)).toEqual([wanted, wanted])

  test('from ~/.gitconfig, and nothing else of it', () => {
    put('.gitconfig', '[user]\n name = Ada\n email = ada@example.com\n signingkey = K\n[alias]\n x = !rm\n')
    expectSame({ 'user.name': 'Ada', 'user.email': 'ada@example.com' })
    expect(gitIdentity(work, home, NO_SYSTEM)).not.toMatch(/signing|alias|rm/)
  })

  test('from the XDG file, which ~/.gitconfig overrides, and from GIT_CONFIG_GLOBAL alone when it is set', () => {
    put('.config/git/config', '[user]\n name = Xdg\n email = xdg@example.com\n')
    put('.gitconfig', '[user]\n name = Home\n')
    put('moved/git/config', '[user]\n name = Moved\n')
    put('other', '[user]\n name = Global\n')
    expectSame({ 'user.name': 'Home', 'user.email': 'xdg@example.com' })
    expectSame({ 'user.name': 'Home' }, { XDG_CONFIG_HOME: join(home, 'moved') })
    expectSame({ 'user.name': 'Global' }, { GIT_CONFIG_GLOBAL: join(home, 'other') })
  })

  test('by the remotes of the repository that a linked worktree belongs to', () => {
    const git = (...args: readonly string[]) =>
      spawnSync('git', ['-C', work, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args])
    git('commit', '-q', '--allow-empty', '-m', 'one')
    git('worktree', 'add', '-q', join(home, 'work/linked'), '-b', 'linked')
    git('remote', 'add', 'origin', 'https://git.example.com/a/b.git')
    put('work.inc', '[user]\n name = Work\n')
    put('.gitconfig', '[includeIf "hasconfig:remote.*.url:https://git.example.com/**"]\n path = ~/work.inc\n')
    const wanted = { 'user.name': 'Work' }
    expect(both({}, join(home, 'work/linked'))).toEqual([wanted, wanted])
  })

  test('through includes, and conditions that hold for this repository', () => {
    const conditions: readonly (readonly [string, boolean])[] = [
      ['gitdir:~/work/', true],
      ['gitdir:~/private/', false],
      ['gitdir:work/', true],
      ['gitdir:WORK/', false],
      ['gitdir/i:WORK/', true],
      [`gitdir:${home}/*/project/.git`, true],
      [`gitdir:${home}/*/.git`, false],
      [`gitdir:${home}/**/.git`, true],
      ['onbranch:main', true],
      ['onbranch:release/', false],
      ['hasconfig:remote.*.url:https://git.example.com/**', true],
      ['hasconfig:remote.*.url:https://other.example.com/**', false],
    ]
    spawnSync('git', ['-C', work, 'remote', 'add', 'origin', 'https://git.example.com/a/b.git'])
    put('.deep/work.inc', '[user]\n name = Work\n[include]\n path = mail.inc\n')
    put('.deep/mail.inc', '[user]\n email = work@example.com\n')
    for (const [condition, holds] of conditions) {
      put('.gitconfig', `[user]\n name = Plain\n[includeIf "${condition}"]\n path = ~/.deep/work.inc\n`)
      expect([condition, ...both()]).toEqual([
        condition,
        ...Array(2).fill(
          holds ? { 'user.name': 'Work', 'user.email': 'work@example.com' } : { 'user.name': 'Plain' },
        ),
      ])
    }
  })

  test('with quotes, newlines and brackets in it, which stay a value', () => {
    put(
      '.gitconfig',
      '[user]\n name = "A \\"B\\" \\\\ C\\n[core]\\n\\tpager = x ; #"\n email = "<a@b>\\t\\b"\n',
    )
    expectSame({ 'user.name': 'A "B" \\ C\n[core]\n\tpager = x ; #', 'user.email': '<a@b>\t\b' })
  })

  test('or none: an empty value, an include loop, a file that git refuses', () => {
    expect(gitIdentity(work, home, NO_SYSTEM)).toBeUndefined()
    put('.gitconfig', '[include]\n path = .gitconfig\n[user]\n name =\n')
    expect(gitIdentity(work, home, NO_SYSTEM)).toBeUndefined()
    put('.gitconfig', '[user\n name = x\n')
    expect(gitIdentity(work, home, NO_SYSTEM)).toBeUndefined()
  })
})

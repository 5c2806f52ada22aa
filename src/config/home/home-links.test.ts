import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { HostPath } from '../../policy/files/path.ts'
import { findHomeLinks } from './home-links.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-home-links-')))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let home = ''
let count = 0
beforeEach(() => {
  home = join(root, `home${count++}`)
  mkdirSync(join(home, 'dot'), { recursive: true })
})

const link = (at: string, to: string): void => {
  mkdirSync(dirname(join(home, at)), { recursive: true })
  symlinkSync(to, join(home, at))
}
const file = (at: string, text = ''): void => {
  mkdirSync(dirname(join(home, at)), { recursive: true })
  writeFileSync(join(home, at), text)
}
const find = (env: Record<string, string> = {}, workspace = 'dot', writable: string[] = []) =>
  findHomeLinks(
    { workspace: join(home, workspace) as HostPath, home: home as HostPath },
    writable.map(dir => join(home, dir)),
    env,
  )
/** As `name → path`, both below the home. */
const found = (...args: Parameters<typeof find>): string[] =>
  find(...args)
    .linked.flatMap(({ name, paths }) => paths.map(path => `${name} → ${path.slice(home.length + 1)}`))
    .sort()

describe('what the home leads to', () => {
  test('a link of a file, of a directory and of an entry in a listed directory', () => {
    link('.bashrc', 'dot/bashrc')
    link('.config/nvim', `${home}/dot/nvim`)
    link('.local/bin/tool', '../../dot/bin/tool')
    link('.config/fish/conf.d/a.fish', '../../../dot/a.fish')
    link('.config/unknown', '../dot/unknown')
    link('notes', 'dot/notes')
    expect(found()).toEqual([
      '~/.bashrc → dot/bashrc',
      '~/.config/fish/conf.d/a.fish → dot/a.fish',
      '~/.config/nvim → dot/nvim',
      '~/.local/bin/tool → dot/bin/tool',
    ])
  })

  test('frameworks of shells, and files that installers add to a start file', () => {
    for (const at of ['.oh-my-zsh', '.zprezto', '.fzf.bash', '.sdkman', '.cache', '.curlrc'])
      link(at, `dot/${at.slice(1)}`)
    link('.cargo/env', '../dot/env')
    link('.cargo/registry', '../dot/registry')
    expect(found()).toEqual([
      '~/.cargo/env → dot/env',
      '~/.fzf.bash → dot/fzf.bash',
      '~/.oh-my-zsh → dot/oh-my-zsh',
      '~/.sdkman → dot/sdkman',
      '~/.zprezto → dot/zprezto',
    ])
  })

  test('links of links: each name in the project on the way, and where they end', () => {
    link('stow', 'dot')
    link('.bashrc', 'stow/current/bashrc')
    link('dot/current', 'v2')
    file('dot/v2/bashrc')
    expect(found()).toEqual(['~/.bashrc → dot/current/bashrc', '~/.bashrc → dot/v2/bashrc'])
  })

  test('a link in the project that leads on to another place is followed from a directory that is held', () => {
    link('.config/nvim', '../dot/nvim')
    file('dot/nvim/init.lua')
    link('dot/nvim/lua', '../shared/lua')
    expect(found()).toContain('~/.config/nvim/lua → dot/shared/lua')
  })

  test('a directory of settings that is itself in the project holds its places, there or not, and not the rest', () => {
    link('.config', 'dot/config')
    file('dot/config/app/settings')
    const paths = found()
    expect(paths).toContain('~/.config/fish → dot/config/fish')
    expect(paths).toContain('~/.config/autostart → dot/config/autostart')
    expect(paths.some(path => path.endsWith('dot/config') || path.includes('app'))).toBe(false)
  })

  test('files deep in a directory of settings are found where the home has links to the project', () => {
    link('.config/nvim/lua/plugins/a.lua', '../../../../dot/a.lua')
    expect(found()).toEqual([])
    link('.vimrc', 'dot/vimrc')
    expect(found()).toEqual(['~/.config/nvim/lua/plugins/a.lua → dot/a.lua', '~/.vimrc → dot/vimrc'])
  })

  test('a project that is a place, lies in one or holds some', () => {
    mkdirSync(join(home, '.config/nvim/lua'), { recursive: true })
    mkdirSync(join(home, '.claude/worktrees/x'), { recursive: true })
    expect(found({}, '.config/nvim')).toEqual(['~/.config/nvim → .config/nvim'])
    expect(found({}, '.config/nvim/lua')).toEqual(['~/.config/nvim → .config/nvim/lua'])
    expect(found({}, '.config')).toContain('~/.config/nvim → .config/nvim')
    expect(found({}, '.claude/worktrees/x')).toEqual([])
  })

  test('a directory that is granted for writing beside the project', () => {
    link('.bashrc', 'other/bashrc')
    expect(found()).toEqual([])
    expect(found({}, 'dot', ['other'])).toEqual(['~/.bashrc → other/bashrc'])
  })

  test('PATH: what leads into the project; not what package tools fill there', () => {
    for (const dir of ['dot/bin', 'dot/node_modules/.bin', 'dot/.venv/bin'])
      mkdirSync(join(home, dir), { recursive: true })
    link('scripts', 'dot/tools')
    const PATH = ['dot/bin', 'dot/node_modules/.bin', 'dot/.venv/bin', 'scripts'].map(dir => join(home, dir))
    const env = { PATH: `${PATH.join(':')}:/usr/bin:bin::`, VIRTUAL_ENV: join(home, 'dot/.venv') }
    const names = find(env).linked.map(({ paths }) => paths.map(path => path.slice(home.length + 1)).join())
    expect(names).toEqual(['dot/bin', 'dot/tools'])
    expect(find({ ...env, DIRENV_DIR: `-${home}/dot` }).linked).toHaveLength(1)
  })

  test('variables that move settings: into the project they count, to the usual place they change nothing', () => {
    link('.zshrc', 'dot/zshrc')
    const moved = found({ XDG_CONFIG_HOME: join(home, 'dot/conf'), ZDOTDIR: join(home, 'dot/z') })
    expect(moved).toContain('$XDG_CONFIG_HOME/fish → dot/conf/fish')
    expect(moved).toContain('$ZDOTDIR/.zshrc → dot/z/.zshrc')
    expect(found({ XDG_CONFIG_HOME: join(home, '.config'), ZDOTDIR: home })).toEqual(found())
  })

  test('links in a circle, and a file where a directory could be, lead nowhere', () => {
    link('.bashrc', '.zshrc')
    link('.zshrc', '.bashrc')
    file('.config')
    expect(found()).toEqual([])
  })

  test('a hard link is reported, because its other name may be anywhere; a plain file is not', () => {
    file('dot/bashrc')
    linkSync(join(home, 'dot/bashrc'), join(home, '.bashrc'))
    file('.zshrc')
    const { homeWarnings } = find()
    expect(homeWarnings).toHaveLength(1)
    expect(homeWarnings[0]).toContain('~/.bashrc has another hard link')
  })

  test('more directories than pen checks are reported', () => {
    link('.vimrc', 'dot/vimrc')
    for (let i = 0; i < 600; i++) mkdirSync(join(home, `.config/nvim/${i}`), { recursive: true })
    expect(find().homeWarnings.join()).toContain('too many directories')
  })
})

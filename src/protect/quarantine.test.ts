import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { onlyWhen } from '../../test/skip.ts'
import { surveyRepository } from '../survey/git/repository.ts'
import type { PlaceRule } from '../survey/places.ts'
import { Quarantine } from './quarantine.ts'
import type { QuarantineEvent } from './quarantine-event.ts'

let base = ''
let ws = ''
let events: QuarantineEvent[] = []
const open: Quarantine[] = []

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-quarantine-')))
  ws = `${base}/ws`
  mkdirSync(ws)
  mkdirSync(`${base}/outside`)
  writeFileSync(`${base}/outside/precious`, 'precious')
  events = []
})
afterEach(() => {
  for (const q of open.splice(0)) q.stop()
  rmSync(base, { recursive: true, force: true })
})

function guard(paths: Readonly<Record<string, PlaceRule>>, dir = `${base}/q`): Quarantine {
  const watch = Object.entries(paths).map(([path, rule]) => ({ path: `${ws}/${path}`, root: ws, rule }))
  return kept(new Quarantine({ watch, dir, tell: event => events.push(event) }))
}

/** `shared`: a soft sandbox has no mounts, and writes the host's git directory. */
function guardSurveyed(repository: 'own' | 'shared' = 'own'): Quarantine {
  const { watch, protect } = surveyRepository(ws, {
    home: '/home/nobody-here',
    stateDir: '/proc/nonexistent',
    ownRepository: repository === 'own',
    protect: [`${ws}/.envrc`],
  })
  return kept(new Quarantine({ watch, held: protect, dir: `${base}/q`, tell: event => events.push(event) }))
}

const kept = (q: Quarantine): Quarantine => {
  open.push(q)
  return q
}

const NOTHING: PlaceRule = { kind: 'nothing' }

function plant(path: string, text = 'evil', mode = 0o755): void {
  mkdirSync(join(ws, path, '..'), { recursive: true })
  writeFileSync(`${ws}/${path}`, text, { mode })
}

describe('what appears at a protected place', () => {
  test('is moved out as it is, to a directory of this user alone; its neighbours stay', () => {
    const q = guard({ '.claude/settings.json': NOTHING, '.vscode': NOTHING })
    plant('.claude/settings.json')
    plant('.claude/notes.md')
    plant('.vscode/deep/run', '#!', 0o755)
    expect(q.sweep()).toHaveLength(2)
    expect(readdirSync(ws)).toEqual(['.claude'])
    expect(readdirSync(`${ws}/.claude`)).toEqual(['notes.md'])
    expect(events.map(e => e.kind === 'moved' && e.what)).toEqual(['file', 'directory'])
    expect(lstatSync(`${base}/q`).mode & 0o777).toBe(0o700)
    expect(readFileSync(`${base}/q/0001-settings.json`, 'utf8')).toBe('evil')
    expect(lstatSync(`${base}/q/0002-.vscode/deep/run`).mode & 0o777).toBe(0o755)
  })

  test('is left alone elsewhere, and a quiet sweep makes no directory', () => {
    const q = guard({ '.vscode': NOTHING })
    plant('src/.vscode/tasks.json')
    expect(q.sweep()).toEqual([])
    expect(existsSync(`${base}/q`)).toBe(false)
  })

  test('may be a link: the link is taken, never what it leads to', () => {
    const q = guard({ '.vscode': NOTHING, '.claude/settings.json': NOTHING, '.cursor/a/b': NOTHING })
    symlinkSync(`${base}/outside`, `${ws}/.vscode`)
    symlinkSync(`${base}/outside`, `${ws}/.claude`)
    mkdirSync(`${ws}/.cursor`)
    symlinkSync('/', `${ws}/.cursor/a`)
    q.sweep()
    expect(events.map(e => e.path)).toEqual([`${ws}/.vscode`, `${ws}/.claude`, `${ws}/.cursor/a`])
    expect(readdirSync(ws)).toEqual(['.cursor'])
    expect(readFileSync(`${base}/outside/precious`, 'utf8')).toBe('precious')
    expect(readlinkSync(`${base}/q/0001-.vscode`)).toBe(`${base}/outside`)
  })

  test('is taken even when its directories were locked', () => {
    const q = guard({ '.claude/settings.json': NOTHING, '.vscode': NOTHING })
    plant('.claude/settings.json')
    plant('.vscode/tasks.json')
    chmodSync(`${ws}/.claude`, 0o111)
    chmodSync(`${ws}/.vscode`, 0)
    q.sweep()
    expect(existsSync(`${ws}/.claude/settings.json`)).toBe(false)
    expect(existsSync(`${ws}/.vscode`)).toBe(false)
    const taken = `${base}/q/0002-.vscode`
    expect(statSync(taken).mode & 0o777).toBe(0)
    for (const locked of [taken, `${ws}/.claude`]) chmodSync(locked, 0o700)
    expect(readdirSync(taken)).toEqual(['tasks.json'])
  })

  test('is taken when it is a pipe, which is not opened', () => {
    const q = guard({ '.envrc': NOTHING, '.git/config': { kind: 'git-config', known: [] } })
    mkdirSync(`${ws}/.git`)
    for (const path of ['.envrc', '.git/config']) Bun.spawnSync(['mkfifo', `${ws}/${path}`])
    expect(q.sweep()).toHaveLength(2)
  })

  test('is never deleted, however often it appears and however large it is', () => {
    const q = guard({ '.envrc': NOTHING, '.vscode': NOTHING })
    for (let i = 0; i < 120; i++) {
      plant('.envrc')
      q.sweep()
    }
    plant('.vscode/f')
    for (let i = 0; i < 6000; i++) linkSync(`${ws}/.vscode/f`, `${ws}/.vscode/${i}`)
    q.finish()
    expect(readdirSync(ws)).toEqual([])
    expect(readdirSync(`${base}/q`)).toHaveLength(121)
    expect(readdirSync(`${base}/q/0121-.vscode`)).toHaveLength(6001)
  })

  test('leaves no descriptor open', () => {
    const q = guard({ '.envrc': NOTHING })
    const open = readdirSync('/proc/self/fd').length
    for (let i = 0; i < 50; i++) {
      plant('.envrc')
      q.sweep()
    }
    expect(readdirSync('/proc/self/fd').length).toBeLessThan(open + 5)
  })

  onlyWhen(process.getuid?.() === 0)(
    'is moved with what the user mounted in it, and that is not touched',
    () => {
      const q = guard({ '.vscode': NOTHING })
      mkdirSync(`${ws}/.vscode/mnt`, { recursive: true })
      Bun.spawnSync(['mount', '-t', 'tmpfs', 'pen-test', `${ws}/.vscode/mnt`])
      try {
        plant('.vscode/mnt/mine', 'mine', 0o755)
        expect(q.sweep()).toMatchObject([{ kind: 'moved' }])
        q.finish()
        const mine = `${base}/q/0001-.vscode/mnt/mine`
        expect([readFileSync(mine, 'utf8'), lstatSync(mine).mode & 0o777]).toEqual(['mine', 0o755])
      } finally {
        for (const dir of [`${ws}/.vscode/mnt`, `${base}/q/0001-.vscode/mnt`]) Bun.spawnSync(['umount', dir])
      }
    },
  )

  test('names the directories in which it can appear', () => {
    const q = guard({ '.envrc': NOTHING, '.git/hooks': { kind: 'git-hooks' } })
    expect([...q.directories()]).toEqual([ws, `${ws}/.git`, `${ws}/.git/hooks`])
    const seen: [string, string][] = [
      [ws, '.envrc'],
      [ws, '.git'],
      [`${ws}/.git/hooks`, 'pre-commit'],
      [ws, 'notes'],
    ]
    expect(seen.map(([dir, name]) => q.concerns(dir, name))).toEqual([true, true, true, false])
  })

  test('stays under another name when the quarantine is on another file system, and nothing is copied', () => {
    if (lstatSync('/dev/shm', { throwIfNoEntry: false })?.dev === lstatSync(base).dev) return
    const away = mkdtempSync('/dev/shm/pen-quarantine-')
    try {
      const q = guard({ '.vscode': NOTHING }, `${away}/q`)
      plant('.vscode/a/tasks.json', 'evil')
      symlinkSync(`${base}/outside`, `${ws}/.vscode/link`)
      const [event] = q.sweep()
      expect(event).toMatchObject({ kind: 'stuck', path: `${ws}/.vscode`, why: 'EXDEV' })
      const aside = (event as { aside?: string }).aside ?? ''
      expect([readdirSync(ws), readdirSync(`${away}/q`)]).toEqual([[basename(aside)], []])
      expect(readFileSync(`${aside}/a/tasks.json`, 'utf8')).toBe('evil')
      expect(readdirSync(`${base}/outside`)).toEqual(['precious'])
    } finally {
      rmSync(away, { recursive: true, force: true })
    }
  })

  test('is renamed in its own directory when it cannot be moved, and is not deleted', () => {
    const long = 'x'.repeat(255)
    const q = guard({ [long]: NOTHING })
    plant(long, 'evil')
    const [event] = q.sweep()
    expect(event).toMatchObject({ kind: 'stuck', path: `${ws}/${long}`, why: 'ENAMETOOLONG' })
    const aside = (event as { aside?: string }).aside ?? ''
    expect(readdirSync(ws).map(name => `${ws}/${name}`)).toEqual([aside])
    expect([aside.includes('/.pen-quarantine-'), readFileSync(aside, 'utf8')]).toEqual([true, 'evil'])
  })
})

describe('git made during the run', () => {
  const git = (...args: readonly string[]): void => {
    const env = {
      PATH: process.env['PATH'] ?? '',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_SYSTEM: '/dev/null',
    }
    Bun.spawnSync(['git', ...args], { cwd: ws, env })
  }

  test('git init with an ordinary remote stays', () => {
    const q = guardSurveyed()
    git('init', '-q')
    git('remote', 'add', 'origin', 'https://git.example.com/a.git')
    expect(q.sweep()).toEqual([])
  })

  test('a hook, a setting that runs a program, and redirections are taken', () => {
    const q = guardSurveyed()
    git('init', '-q')
    plant('.git/hooks/pre-commit')
    git('config', 'core.fsmonitor', './evil')
    plant('.git/commondir', '../elsewhere')
    plant('.git/config.worktree', '[core]\nhooksPath = x')
    q.sweep()
    expect(new Set(events.map(e => e.path.slice(ws.length)))).toEqual(
      new Set(['/.git/commondir', '/.git/config', '/.git/config.worktree', '/.git/hooks']),
    )
  })

  test.each(['gitdir: ./evil\n', 'x'])('a .git file that says %j is taken', text => {
    const q = guardSurveyed()
    plant('.git', text)
    q.sweep()
    expect(existsSync(`${ws}/.git`)).toBe(false)
  })

  test('settings in an unreadable form are taken', () => {
    const q = guardSurveyed()
    plant('.git/config', '[core\n')
    expect(q.sweep()).toHaveLength(1)
  })

  test('a pointer that names the right directory stays, another one is taken', () => {
    const rule: PlaceRule = { kind: 'git-pointer', to: `${ws}/.git/modules/lib` }
    const q = guard({ 'lib/.git': rule })
    plant('lib/.git', 'gitdir: ../.git/modules/lib\n')
    expect(q.sweep()).toEqual([])
    writeFileSync(`${ws}/lib/.git`, 'gitdir: ../evil\n')
    expect(q.sweep()).toHaveLength(1)
  })
})

describe('what was there before', () => {
  test('a link is put back after it was changed', () => {
    symlinkSync('dotfiles', `${ws}/.cursor`)
    const q = guard({ '.cursor': { kind: 'link', text: 'dotfiles' } })
    expect(q.sweep()).toEqual([])
    rmSync(`${ws}/.cursor`)
    plant('.cursor/mcp.json')
    expect(q.sweep()[0]).toMatchObject({ kind: 'moved', restored: true })
    expect(readlinkSync(`${ws}/.cursor`)).toBe('dotfiles')
  })

  test('a held file that the host replaced is reported once and left as the user wrote it', () => {
    plant('.envrc', 'old')
    const q = guardSurveyed()
    expect(q.sweep()).toEqual([])
    writeFileSync(`${ws}/.envrc.new`, 'new')
    renameSync(`${ws}/.envrc.new`, `${ws}/.envrc`)
    expect(q.sweep()).toEqual([{ kind: 'lost', path: `${ws}/.envrc`, gone: false }])
    expect(q.sweep()).toEqual([])
    expect(readFileSync(`${ws}/.envrc`, 'utf8')).toBe('new')
  })

  test('a held file that the host removed is guarded like an absent one from then on', () => {
    plant('.envrc', 'old')
    const q = guardSurveyed()
    rmSync(`${ws}/.envrc`)
    expect(q.sweep()).toEqual([{ kind: 'lost', path: `${ws}/.envrc`, gone: true }])
    plant('.envrc', 'evil')
    expect(q.sweep()).toHaveLength(1)
    expect(existsSync(`${ws}/.envrc`)).toBe(false)
  })

  test("settings and hooks of the host's repository are not watched: the sandbox has its own", () => {
    plant('.git/config', '[core]\nbare = false\n')
    plant('.git/HEAD', 'ref: x')
    const q = guardSurveyed()
    plant('.git/config', '[core]\nfsmonitor = mine\n')
    plant('.git/hooks/pre-commit', 'mine')
    expect(q.sweep()).toEqual([])
    expect(readFileSync(`${ws}/.git/config`, 'utf8')).toContain('mine')
  })

  test('a setting of a shared repository stays; one that runs a program is undone', () => {
    plant('.git/config', '[core]\nbare = false\n[alias]\nst = !status\n')
    plant('.git/HEAD', 'ref: x')
    const q = guardSurveyed('shared')
    const replace = (text: string): void => {
      writeFileSync(`${ws}/.git/config.lock`, text)
      renameSync(`${ws}/.git/config.lock`, `${ws}/.git/config`)
    }
    const fine = '[core]\nbare = false\n[alias]\nst = !status\n[user]\nname = host\n'
    replace(fine)
    expect(q.sweep().map(e => e.kind)).toEqual(['lost'])
    expect(q.sweep()).toEqual([])
    replace(`${fine}[core]\nfsmonitor = ./evil\n`)
    expect(q.sweep()[0]).toMatchObject({ kind: 'moved', restored: true })
    expect(readFileSync(`${ws}/.git/config`, 'utf8')).toBe(fine)
  })
})

test('a process that swaps directories and links all the time gains nothing outside', async () => {
  const q = guard({ '.claude/settings.json': NOTHING, '.vscode': NOTHING, '.a/b/c': NOTHING })
  mkdirSync(`${base}/outside/b`)
  for (const name of ['settings.json', 'b/c']) writeFileSync(`${base}/outside/${name}`, 'mine')
  const racer = `
    cd "$1" || exit 1
    end=$(( $(date +%s) + 2 ))
    while [ "$(date +%s)" -lt "$end" ]; do
      for n in 1 2 3 4 5 6 7 8 9; do
        mkdir -p .claude .a/b 2>/dev/null; echo x > .claude/settings.json; mkdir .vscode; echo x > .a/b/c
        mv .claude c2; ln -s "$2" .claude; rm -f .claude; mv c2 .claude; ln -sfn "$2" .vscode
        mv .a a2; ln -s "$2" .a; rm -f .a; mv a2 .a
      done
    done 2>/dev/null`
  const child = Bun.spawn(['sh', '-c', racer, 'sh', ws, `${base}/outside`], { stderr: 'ignore' })
  let sweeps = 0
  while (child.exitCode === null) {
    q.sweep()
    if (sweeps++ % 8 === 0) await Bun.sleep(1)
  }
  q.sweep()
  expect(readdirSync(`${base}/outside`).sort()).toEqual(['b', 'precious', 'settings.json'])
  expect(readFileSync(`${base}/outside/b/c`, 'utf8')).toBe('mine')
  expect(existsSync(`${ws}/.claude/settings.json`)).toBe(false)
  expect(existsSync(`${ws}/.vscode`)).toBe(false)
  expect(existsSync(`${ws}/.a/b/c`)).toBe(false)
  expect(events.length).toBeGreaterThan(10)
}, 10_000)

test('settings that a process has open for writing are moved; those that git renames into place stay', () => {
  mkdirSync(`${ws}/.git`)
  const config = `${ws}/.git/config`
  const q = guard({ '.git/config': { kind: 'git-config', known: [] } })
  writeFileSync(`${config}.lock`, '[core]\n\tbare = false\n')
  renameSync(`${config}.lock`, config)
  expect(q.sweep()).toEqual([])
  const fd = openSync(config, 'r+')
  expect(q.sweep()).toMatchObject([{ kind: 'moved', path: config, restored: true }])
  closeSync(fd)
  expect([q.sweep(), readFileSync(config, 'utf8')]).toEqual([[], '[core]\n\tbare = false\n'])
  expect(readdirSync(`${ws}/.git`)).toEqual(['config'])
})

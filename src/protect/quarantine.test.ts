import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { skipUnless } from '../../test/skip.ts'
import { surveyRepository } from '../survey/git/repository.ts'
import type { PlaceRule } from '../survey/places.ts'
import { Quarantine, type QuarantineEvent } from './quarantine.ts'

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
    stateDir: '/nonexistent',
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
  test('is moved out, disarmed and reported; its neighbours stay', async () => {
    const q = guard({ '.claude/settings.json': NOTHING, '.vscode': NOTHING })
    plant('.claude/settings.json')
    plant('.claude/notes.md')
    plant('.vscode/deep/tasks.json')
    expect(q.sweep()).toHaveLength(2)
    await q.settled()
    expect(readdirSync(ws)).toEqual(['.claude'])
    expect(readdirSync(`${ws}/.claude`)).toEqual(['notes.md'])
    expect(events.map(e => e.kind === 'moved' && e.what)).toEqual(['file', 'directory'])
    expect(lstatSync(`${base}/q`).mode & 0o777).toBe(0o700)
    expect(lstatSync(`${base}/q/0001-settings.json`).mode & 0o777).toBe(0o600)
    expect(lstatSync(`${base}/q/0002-.vscode/deep/tasks.json`).mode & 0o777).toBe(0o600)
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
  })

  test('is taken when it is a pipe, which is not opened', () => {
    const q = guard({ '.envrc': NOTHING, '.git/config': { kind: 'git-config', known: [] } })
    mkdirSync(`${ws}/.git`)
    for (const path of ['.envrc', '.git/config']) Bun.spawnSync(['mkfifo', `${ws}/${path}`])
    expect(q.sweep()).toHaveLength(2)
  })

  test('a file with another hard link in the workspace keeps its mode', async () => {
    const q = guard({ '.vscode': NOTHING })
    plant('run.sh', '#!', 0o755)
    mkdirSync(`${ws}/.vscode`)
    Bun.spawnSync(['ln', `${ws}/run.sh`, `${ws}/.vscode/x`])
    q.sweep()
    await q.settled()
    expect(lstatSync(`${ws}/run.sh`).mode & 0o777).toBe(0o755)
  })

  test('is disarmed once more at the end: a process may have kept its directory open', async () => {
    const q = guard({ '.vscode': NOTHING })
    plant('.vscode/tasks.json')
    q.sweep()
    await q.settled()
    writeFileSync(`${base}/q/0001-.vscode/late`, 'evil', { mode: 0o755 })
    await q.finish()
    expect(lstatSync(`${base}/q/0001-.vscode/late`).mode & 0o777).toBe(0o600)
  })

  test('is removed when it appears too often: the quarantine does not grow without bound', async () => {
    const q = guard({ '.envrc': NOTHING })
    for (let i = 0; i < 120; i++) {
      plant('.envrc')
      q.sweep()
    }
    await q.settled()
    expect(existsSync(`${ws}/.envrc`)).toBe(false)
    expect(readdirSync(`${base}/q`)).toHaveLength(100)
  })

  test('of any size is moved at once, and removed while timers go on', async () => {
    const q = guard({ '.vscode': NOTHING, '.idea': NOTHING })
    for (const name of ['.vscode', '.idea']) {
      plant(`${name}/f`)
      for (let i = 0; i < 8000; i++) linkSync(`${ws}/${name}/f`, `${ws}/${name}/${i}`)
    }
    let ticks = 0
    const clock = setInterval(() => ticks++, 1)
    const began = performance.now()
    expect(q.sweep()).toHaveLength(2)
    const moved = performance.now()
    await q.settled()
    const settled = performance.now()
    clearInterval(clock)
    expect(readdirSync(ws)).toEqual([])
    expect(readdirSync(`${base}/q`)).toEqual([])
    expect(events.filter(({ kind }) => kind === 'unkept')).toHaveLength(2)
    expect([(moved - began) * 3 < settled - moved, ticks > 4]).toEqual([true, true])
  })

  test('that is not removed when the run must end is left in the quarantine, and that is reported', async () => {
    const q = guard({ '.vscode': NOTHING })
    plant('.vscode/f')
    for (let i = 0; i < 6000; i++) linkSync(`${ws}/.vscode/f`, `${ws}/.vscode/${i}`)
    q.sweep()
    await q.finish(0)
    expect(events.at(-1)).toEqual({ kind: 'unkept', path: `${base}/q/0001-.vscode`, how: 'left' })
    expect(existsSync(`${ws}/.vscode`)).toBe(false)
  })

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

  test('is moved to another file system as a copy without links', async () => {
    if (lstatSync('/dev/shm', { throwIfNoEntry: false })?.dev === lstatSync(base).dev) return
    const away = mkdtempSync('/dev/shm/pen-quarantine-')
    try {
      const q = guard({ '.vscode': NOTHING }, `${away}/q`)
      plant('.vscode/a/tasks.json', 'evil')
      symlinkSync(`${base}/outside`, `${ws}/.vscode/link`)
      q.sweep()
      await q.settled()
      expect(readdirSync(ws)).toEqual([])
      expect(readFileSync(`${away}/q/0001-.vscode/a/tasks.json`, 'utf8')).toBe('evil')
      expect(readFileSync(`${away}/q/0001-.vscode/link.link`, 'utf8')).toBe(`${base}/outside`)
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

  skipUnless(process.getuid?.() === 0, 'root, to mount a small disk')(
    'is renamed and not deleted when the disk of the quarantine is full',
    async () => {
      mkdirSync(`${base}/full`)
      Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'pen-test', `${base}/full`])
      try {
        const q = guard({ '.envrc': NOTHING }, `${base}/full/q`)
        plant('.envrc', 'e'.repeat(100_000))
        expect(q.sweep()).toMatchObject([{ kind: 'moved' }])
        await q.settled()
        const [, event] = events
        expect(event).toMatchObject({ kind: 'stuck', why: 'ENOSPC' })
        const aside = (event as { aside?: string }).aside ?? ''
        expect(readFileSync(aside, 'utf8')).toHaveLength(100_000)
      } finally {
        for (const q of open.splice(0)) q.stop()
        Bun.spawnSync(['umount', `${base}/full`])
      }
    },
  )
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

  test('a place that was mounted again is held again', () => {
    plant('.envrc', 'old')
    const q = guardSurveyed()
    rmSync(`${ws}/.envrc`)
    q.sweep()
    plant('.envrc', 'new')
    q.hold(`${ws}/.envrc`)
    expect(q.sweep()).toEqual([])
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

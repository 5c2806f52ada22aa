import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TemporaryProject, temporaryProject } from '../../../../test/temporary-project.ts'

const MAIN = join(import.meta.dir, '../../../main.ts')

function pen(project: TemporaryProject, ...args: readonly string[]) {
  const env = { HOME: project.home, PATH: process.env['PATH'] }
  const ran = spawnSync(process.execPath, [MAIN, ...args], { cwd: project.workspace, env, encoding: 'utf8' })
  return { code: ran.status, said: `${ran.stdout}${ran.stderr}` }
}

test('settings survive install and removal byte for byte, and files and directories that pen made are gone', () => {
  using project = temporaryProject()
  const claude = '{\r\n\t"hooks": {"PreToolUse": [ {"matcher": "Bash", "hooks": []} ]},\n"permissions":{}}'
  project.write('.claude/settings.local.json', claude)
  const settings = join(project.workspace, '.claude/settings.local.json')
  chmodSync(settings, 0o600)
  // In the home a link is the user's own.
  const gemini = '// mine\n{ "tools": {}, /* no */ }\n'
  mkdirSync(join(project.home, '.gemini'))
  mkdirSync(join(project.home, 'dotfiles'))
  writeFileSync(join(project.home, 'dotfiles/gemini.json'), gemini)
  symlinkSync('../dotfiles/gemini.json', join(project.home, '.gemini/settings.json'))
  const before = lstatSync(join(project.home, '.gemini/settings.json')).ino

  expect(pen(project, 'hook', 'claude-code')).toMatchObject({
    code: 2,
    said: expect.stringContaining('--yes'),
  })
  expect(readFileSync(settings, 'utf8')).toBe(claude)
  const installed = pen(project, 'hook', 'claude-code', '--yes')
  expect([installed.code, installed.said]).toEqual([
    0,
    expect.stringContaining('1 other hooks see the same calls'),
  ])
  const [ours, theirs] = JSON.parse(readFileSync(settings, 'utf8')).hooks.PreToolUse
  expect([ours.hooks[0].command, theirs.matcher]).toEqual([expect.stringContaining('exit 2'), 'Bash'])
  expect(pen(project, 'hook', 'claude-code', '--yes')).toMatchObject({ code: 125 })
  expect(pen(project, 'hook', 'gemini', '--yes').said).toContain('--user')
  expect(pen(project, 'hook', 'gemini', '--user', '--yes').code).toBe(0)
  for (const agent of ['codex', 'opencode', 'cursor'])
    expect(pen(project, 'hook', agent, '--yes').code).toBe(0)
  expect(readFileSync(join(project.workspace, '.codex/rules/pen.rules'), 'utf8')).toContain(
    `"--project", "${project.workspace}", "--"]`,
  )
  expect(pen(project, 'hook').said.trim().split('\n')).toHaveLength(6)

  expect(pen(project, 'hook', '--remove').code).toBe(0)
  expect([readFileSync(settings, 'utf8'), lstatSync(settings).mode & 0o777]).toEqual([claude, 0o600])
  expect(readFileSync(join(project.home, 'dotfiles/gemini.json'), 'utf8')).toBe(gemini)
  expect(lstatSync(join(project.home, '.gemini/settings.json')).ino).toBe(before)
  for (const folder of ['.codex', '.opencode', '.cursor'])
    expect(existsSync(join(project.workspace, folder))).toBe(false)
})

test('broken settings, other files in the place, and links are left alone with a message', () => {
  using project = temporaryProject()
  for (const [agent, path, text, why] of [
    ['claude-code', '.claude/settings.local.json', '{ // no comments here\n}', 'CONFIG_SYNTAX'],
    ['codex', '.codex/hooks.json', '{"hooks": []}', 'pen expects an object here'],
    ['opencode', '.opencode/plugin/pen.js', 'mine', "exists, and is not pen's"],
  ] as const) {
    project.write(path, text)
    const { code, said } = pen(project, 'hook', agent, '--yes')
    expect([code === 0, said]).toEqual([false, expect.stringContaining(why)])
    expect(readFileSync(join(project.workspace, path), 'utf8')).toBe(text)
  }
  const other = join(project.home, 'other')
  mkdirSync(other)
  symlinkSync(other, join(project.workspace, '.cursor'))
  expect(pen(project, 'hook', 'cursor', '--yes').said).toContain('is a link')
  expect(existsSync(join(other, 'hooks.json'))).toBe(false)
  expect(pen(project, 'hook', 'claude-cod', '--yes').said).toContain('pen hook claude-code')
  expect(pen(project, 'hook', '--remove').said).toContain('no hook is installed here')
})

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Plan, Step } from '../plan/plan.ts'
import type { GuestPath, HostPath } from '../policy/files/path.ts'
import { findCommand } from './find-command.ts'

let host: string
beforeAll(() => {
  host = mkdtempSync(join(tmpdir(), 'pen-find-'))
  mkdirSync(join(host, 'usr/bin'), { recursive: true })
  mkdirSync(join(host, 'ws/dir'), { recursive: true })
  const put = (path: string, text: string, mode: number) => {
    writeFileSync(join(host, path), text)
    chmodSync(join(host, path), mode)
  }
  put('usr/bin/tool', '\x7fELF', 0o755)
  put('usr/bin/plain', 'text', 0o644)
  put('ws/script', '#!/usr/bin/tool -x\n', 0o755)
  put('ws/broken', '#! /nowhere/else\n', 0o755)
  put('ws/unrunnable', '#!/usr/bin/plain\n', 0o755)
  put('ws/note', 'text', 0o644)
  put('ws/windows', '#!/usr/bin/tool\r\n', 0o755)
  put('outside', '\x7fELF', 0o755)
  symlinkSync('../outside', join(host, 'ws/out'))
  symlinkSync('tool', join(host, 'usr/bin/alias'))
})
afterAll(() => rmSync(host, { recursive: true, force: true }))

const at = (path: string) => path as GuestPath
const steps = (): Step[] => [
  { op: 'bind', from: join(host, 'usr') as HostPath, at: at('/usr'), mode: 'ro', why: 'system' },
  { op: 'link', at: at('/bin'), to: 'usr/bin' },
  { op: 'devices', at: at('/dev') },
  { op: 'processes', at: at('/proc') },
  { op: 'file', at: at('/etc/passwd'), text: '' },
  { op: 'tmpfs', at: at('/tmp'), size: 1 as never, mode: 0o777 },
  { op: 'bind', from: join(host, 'ws') as HostPath, at: at('/w/s'), mode: 'rw', why: 'granted' },
]
const find = (name: string, hostPath = '') =>
  findCommand(
    {
      argv: [name],
      cwd: '/w/s',
      steps: steps(),
      env: [{ name: 'PATH', value: '/usr/local/bin:/bin', secret: false }],
    } as unknown as Plan,
    hostPath,
  )
const code = (name: string) => {
  const found = find(name)
  return found.ok ? 0 : found.exitCode
}

describe('a command', () => {
  test('is found by its name, through links of the system, and by its path', () => {
    for (const name of [
      'tool',
      'alias',
      '/usr/bin/tool',
      '/bin/tool',
      '../../bin/tool',
      './script',
      'dir/../script',
    ])
      expect([name, code(name)]).toEqual([name, 0])
  })
  test('that does not exist is 127, also below a private directory and beside a granted one', () => {
    for (const name of [
      'nope',
      './nope',
      '/tmp/nope',
      '/tmp/dir/nope',
      '/home/agent/x',
      '/w/other',
      '/usr/bin/nope',
      '',
    ])
      expect([name, code(name)]).toEqual([name, 127])
  })
  test('that is not a program is 126: a plain file, a directory, a mount point', () => {
    for (const name of ['plain', './note', './dir', '/w/s', '/w', '/tmp', '/', '/etc', '/etc/passwd'])
      expect([name, code(name)]).toEqual([name, 126])
  })
  test('whose interpreter is missing or no program is 126, and says which', () => {
    const found = find('./broken')
    expect(found).toMatchObject({ ok: false, exitCode: 126 })
    expect(found.ok ? '' : found.what).toContain('its interpreter /nowhere/else is not found')
    expect(find('./unrunnable')).toMatchObject({ ok: false, exitCode: 126 })
  })
  test('in a place that the engine makes is left to the engine', () => {
    expect(code('/proc/self/exe')).toBe(0)
    expect(code('/dev/fd/3')).toBe(0)
  })
  test('that only the host has says where, and how to show it', () => {
    const found = find('sh', '/usr/bin:/bin')
    expect(found.ok ? '' : found.hint).toMatch(/^the host has it at \/usr\/bin\/sh/)
    expect(find('pen-no-such-program', '/usr/bin')).toMatchObject({
      hint: expect.stringContaining('spelling'),
    })
  })
})

describe('the fix', () => {
  test('names the obstacle: a directory, a link that leads out, Windows line endings, an empty word', () => {
    const told = (name: string) => {
      const found = find(name)
      return found.ok ? '' : `${found.exitCode} ${found.what}; ${found.hint}`
    }
    expect(told('./dir')).toStartWith('126 ./dir is a directory; name a program')
    expect(told('./out')).toMatch(
      /^127 .*\/w\/s\/out is a link that leads out of it; the host has it at .*--read/,
    )
    expect(told('./windows')).toMatch(/^126 .*interpreter \/usr\/bin\/tool\r is not found.*end as on Windows/)
    expect(told('')).toStartWith('127 the command is an empty word')
  })
  test('is a profile where that shows it, and else the directory', () => {
    mkdirSync(join(host, 'home/.cargo/bin'), { recursive: true })
    mkdirSync(join(host, 'home/my bin'), { recursive: true })
    for (const path of ['home/.cargo/bin/cargo-x', 'home/my bin/mine'])
      writeFileSync(join(host, path), '', { mode: 0o755 })
    const hint = (name: string, dir: string) => {
      const found = find(name, join(host, dir))
      return found.ok ? '' : found.hint
    }
    expect(hint('cargo-x', 'home/.cargo/bin')).toEndWith(
      `use --profile dev, or --read ${host}/home/.cargo/bin`,
    )
    // A package manager's prefix: one hint for all of it, and of ~/.local no more than what is needed.
    for (const prefix of ['.npm-global', '.local', '.tools']) {
      mkdirSync(join(host, 'home', prefix, 'bin'), { recursive: true })
      mkdirSync(join(host, 'home', prefix, 'lib/node_modules/agent'), { recursive: true })
      writeFileSync(join(host, 'home', prefix, 'lib/node_modules/agent/cli.js'), '', { mode: 0o755 })
      symlinkSync('../lib/node_modules/agent/cli.js', join(host, 'home', prefix, 'bin/agent'))
    }
    expect(hint('agent', 'home/.npm-global/bin')).toEndWith(
      `use --profile dev, or --read ${host}/home/.npm-global`,
    )
    expect(hint('agent', 'home/.tools/bin')).toEndWith(`use --read ${host}/home/.tools`)
    expect(hint('agent', 'home/.local/bin')).toEndWith(
      `--read ${host}/home/.local/bin --read ${host}/home/.local/lib`,
    )
    symlinkSync('my bin', join(host, 'home/link'))
    expect(hint('mine', 'home/link')).toEndWith(`--read '${host}/home/my bin'`)
    expect(hint('mine', 'home/my bin')).toEndWith(`does not show: use --read '${host}/home/my bin'`)
  })
})

import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../package.json'
import { temporaryProject } from '../test/temporary-project.ts'
import { capture } from './base/spawn.ts'

const MAIN = join(import.meta.dir, 'main.ts')
const TERMINAL = join(import.meta.dir, 'cli/frame/terminal.ts')
const env = { PATH: '/usr/bin:/bin', BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' }

const pen = (words: readonly string[], more: Record<string, string> = {}) =>
  capture([process.execPath, MAIN, ...words], { env: { ...env, ...more }, timeoutMs: 10_000 })
/** `$PEN` and `$BUN -e "$SCRIPT"` in a shell. */
const shell = (script: string, code = '') =>
  capture(['/bin/sh', '-c', `pen() { "$BUN" "$MAIN" "$@"; }; ${script}`], {
    env: {
      ...env,
      BUN: process.execPath,
      MAIN,
      SCRIPT: `import { openTerminal } from ${JSON.stringify(TERMINAL)}\n${code}`,
    },
    timeoutMs: 10_000,
  })

describe('pen', () => {
  test('prints its version', async () => {
    expect(await pen(['--version'])).toMatchObject({ code: 0, stdout: `pen ${version}\n`, stderr: '' })
    expect(JSON.parse((await pen(['version', '--json'])).stdout).version).toBe(version)
  })

  test('P15 shows the name of a project as text, whichever verb shows it', async () => {
    using here = temporaryProject()
    const name = 'a\u001b[2J\u202eb\nforged'
    const cwd = join(here.workspace, name)
    mkdirSync(join(cwd, '.pen'), { recursive: true })
    const inside = (line: string) =>
      capture([process.execPath, MAIN, ...line.split(' ')], {
        env: { ...env, HOME: here.home },
        cwd,
        timeoutMs: 20_000,
      })
    const verbs = ['init', 'allow a.test', 'deny b.test', 'forget a.test', 'grants', 'config show']
    for (const line of verbs) {
      const { code, stdout, stderr } = await inside(line)
      expect([line, code, /[^\n\P{Cc}]|\p{Cf}|^forged/mu.test(stdout + stderr)]).toEqual([line, 0, false])
    }
    writeFileSync(join(cwd, '.pen/config.json'), '{"version":1,"network":{"deny":["c.test"]}}')
    const [digest] = /sha256:[0-9a-f]{64}/.exec((await inside('config diff')).stdout) ?? []
    const applied = await inside(`config apply --yes --expect ${digest}`)
    expect(applied.stdout).toContain('applied for ')
    expect(applied.stdout).not.toMatch(/[^\n\P{Cc}]|\p{Cf}|^forged/mu)
  })

  test('tells a mistake on stderr and exits 2', async () => {
    expect(await pen(['vershun'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'pen: USAGE: unknown verb "vershun"\n  fix: did you mean pen version?\n',
    })
  })

  test('has no colour in a pipe unless forced', async () => {
    expect((await pen(['help'], { FORCE_COLOR: '1' })).stdout).toContain('\u001b[1mNetwork\u001b[22m')
    expect((await pen(['help'], { FORCE_COLOR: '1', NO_COLOR: '1' })).stdout).not.toContain('\u001b')
  })

  test('refuses arguments that are no text, and takes the replacement character', async () => {
    const bad = await shell(`pen help "$(printf 'a\\377')"`)
    expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining('argument 2 is not valid UTF-8') })
    expect((await shell(`pen help 'a\ufffd'`)).stderr).toContain('unknown verb "a\ufffd"')
  })
})

describe('output', () => {
  const large = `openTerminal({}).print('x'.repeat(3_000_000)); process.exit(0)`

  test('is complete when the reader is slow and pen exits at once', async () => {
    const { stdout } = await shell('"$BUN" -e "$SCRIPT" | (sleep 0.2; wc -c)', large)
    expect(stdout.trim()).toBe('3000001')
  })

  test('ends quietly when the reader has gone', async () => {
    expect(await shell('{ sleep 0.1; pen help; echo $? >&2; } | true')).toMatchObject({
      stdout: '',
      stderr: '141\n',
    })
  })

  test('that cannot be written is a failure', async () => {
    const { stdout, stderr } = await shell('pen help > /dev/full; echo $?')
    expect(stdout).toBe('125\n')
    expect(stderr).toStartWith('pen: STATE: could not write to stdout (ENOSPC)\n')
  })

  test('a failure that cannot be printed still has its exit code', async () => {
    expect((await shell('pen nope 2> /dev/full; echo $?')).stdout).toBe('2\n')
  })
})

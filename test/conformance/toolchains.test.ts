/**
 * Programs that a user calls by name on the host, called by the same name inside: toolchains of the home, the
 * system and the project.
 */
import { expect } from 'bun:test'
import { chmodSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Box, quote } from './box.ts'
import { onTheHost } from './conformance.ts'

const program = (box: Box, path: string, body = 'echo "ran $0"'): string =>
  box.file(path, `#!/bin/sh\n${body}\n`, 0o755)

/** As a login does it: the user's directories come first. */
const searching = (...dirs: string[]) => ({ PATH: [...dirs, '/usr/bin', '/bin'].join(':') })

onTheHost(
  'P1 profile dev shows the toolchains of a home that is closed to others, and nothing beside them',
  async box => {
    const tool = program(
      box,
      join(box.home, '.cargo/bin/pen-tool'),
      'echo "$RUSTUP_HOME"; cat "$RUSTUP_HOME/settings.toml"',
    )
    box.file(join(box.home, '.rustup/settings.toml'), 'version = 12', 0o600)
    const key = box.file(join(box.home, '.cargo/credentials.toml'), 'SECRET')
    chmodSync(box.home, 0o700)
    const env = searching(join(box.home, '.cargo/bin'))
    const shown = await box.run(['pen-tool'], { flags: ['--profile', 'dev'], env })
    expect(shown.stdout).toBe(`${join(box.home, '.rustup')}\nversion = 12`)
    const beside = await box.sh(`cat ${quote(key)}; touch ${quote(tool)}`, {
      flags: ['--profile', 'dev'],
      env,
    })
    expect([beside.stdout, beside.code]).toEqual(['', 1])
    const hidden = await box.run(['pen-tool'], { env })
    expect([hidden.code, hidden.stdout]).toEqual([127, ''])
    expect(hidden.stderr).toContain(
      `the host has it at ${tool}, which this policy does not show: use --profile dev`,
    )
  },
)

onTheHost('P1 a directory of PATH is searched inside when it is granted, and only then', async box => {
  const bin = join(box.home, 'own-bin')
  program(box, join(bin, 'pen-tool'))
  program(box, '.venv/bin/pen-env')
  const env = searching(join(box.project, '.venv/bin'), bin)
  expect((await box.run(['pen-env'], { env })).stdout).toBe(`ran ${join(box.project, '.venv/bin/pen-env')}\n`)
  const refused = await box.run(['pen-tool'], { env })
  expect([refused.code, refused.stdout]).toEqual([127, ''])
  expect(refused.stderr).toContain(`--read ${bin}`)
  const granted = await box.run(['pen-tool'], { env, flags: ['--read', bin] })
  expect(granted.stdout).toBe(`ran ${join(bin, 'pen-tool')}\n`)
  const path = await box.sh('echo "$PATH"', { env })
  expect(path.stdout).toStartWith(`${join(box.project, '.venv/bin')}:/usr/local/sbin:`)
  expect(path.stdout).not.toContain(bin)
})

onTheHost('P1 the Chromium of Debian starts headless, and shows a page of the project', async box => {
  box.file('page.html', '<title>x</title><p>text-of-the-page</p>')
  const words = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--dump-dom',
    `file://${box.project}/page.html`,
  ]
  const { code, stdout, stderr } = await box.run(['chromium', ...words])
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('chromium.d')])
  expect(stdout).toContain('<p>text-of-the-page</p>')
})

onTheHost(
  'P14 a command outside of the sandbox is 127, a file that is no program is 126, each with its fix',
  async box => {
    program(box, join(box.home, 'outside/pen-tool'))
    symlinkSync(join(box.home, 'outside/pen-tool'), join(box.project, 'linked'))
    box.file('windows', '#!/bin/sh\r\necho ran\r\n', 0o755)
    box.directory(join(box.project, 'dir'))
    const printed = async (name: string) => {
      const { code, stderr } = await box.run([name])
      return `${code} ${stderr}`
    }
    expect(await printed('./linked')).toMatch(
      /^127 .*leads out of it.*fix: the host has it at .*outside\/pen-tool.*--read/s,
    )
    expect(await printed('./windows')).toMatch(
      /^126 .*interpreter \/bin\/sh\\u000d is not found.*fix: .*Windows/s,
    )
    expect(await printed('./dir')).toMatch(/^126 .*\.\/dir is a directory\n/s)
    expect(await printed('')).toMatch(/^127 .*empty word/s)
    program(box, 'fine')
    expect((await box.run(['./fine'])).stdout).toBe('ran ./fine\n')
  },
)

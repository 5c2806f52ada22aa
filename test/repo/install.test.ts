/** install.sh and uninstall.sh, with a program that says what it was asked. The suite `release` installs the real one. */
import { afterAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './clone.ts'
import { ROOT } from './sources.ts'

const PROGRAM = `#!/bin/sh
echo "$*" >>"$HOME/asked"
case $1 in version) echo 'pen 1.2.3' ;; uninstall) [ ! -e "$HOME/busy" ] ;; esac
`
const parent = mkdtempSync(join(tmpdir(), 'pen install ü '))
afterAll(() => rmSync(parent, { recursive: true }))

let count = 0
function makeRelease() {
  const release = join(parent, `release ${count}`)
  const home = join(parent, `home ${count++}`)
  mkdirSync(release)
  mkdirSync(home)
  for (const name of ['install.sh', 'uninstall.sh']) copyFileSync(join(ROOT, name), join(release, name))
  const program = `pen-${process.platform}-${process.arch}`
  writeFileSync(join(release, program), PROGRAM)
  const sum = createHash('sha256').update(PROGRAM).digest('hex')
  writeFileSync(join(release, 'SHA256SUMS'), `${'0'.repeat(64)}  npm/x-${program}\n${sum}  ${program}\n`)
  const sh = (script: string, ...words: string[]) =>
    run(['sh', join(release, script), ...words], '/', { HOME: home })
  return { home, program: join(release, program), sh, pen: join(home, '.local/bin/pen') }
}

describe('install.sh', () => {
  test('puts the program of this platform in ~/.local/bin, and uninstall.sh leaves nothing', () => {
    const { home, sh, pen } = makeRelease()
    const installed = sh('install.sh')
    expect([installed.code, installed.err]).toEqual([0, ''])
    expect(installed.out).toContain(`installed pen 1.2.3: ${pen}\n`)
    expect(installed.out).toContain(`fix: add this line to the profile of your shell: export PATH="`)
    expect(readFileSync(pen, 'utf8')).toBe(PROGRAM)
    // Again: the program that runs meanwhile is replaced in one step.
    expect(sh('install.sh').code).toBe(0)
    const removed = sh('uninstall.sh', '--yes')
    expect([removed.code, removed.out, removed.err]).toEqual([0, `removed ${pen}\n`, ''])
    expect(readFileSync(join(home, 'asked'), 'utf8')).toEndWith('uninstall --yes\n')
    expect(readdirSync(home)).toEqual(['asked'])
  })

  test('installs nothing when the program is not the one of SHA256SUMS', () => {
    const { program, sh, pen } = makeRelease()
    writeFileSync(program, `${PROGRAM}\necho evil >"$HOME/evil"\n`)
    const refused = sh('install.sh')
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('is not the file that SHA256SUMS names')
    expect(existsSync(pen)).toBe(false)
  })

  test('takes another directory, and keeps what else is in it', () => {
    const { home, sh } = makeRelease()
    const to = join(home, 'my tools')
    mkdirSync(to)
    writeFileSync(join(to, 'other'), '')
    expect(sh('install.sh', '--to', to).code).toBe(0)
    expect(readdirSync(to)).toEqual(['other', 'pen'])
    expect(sh('uninstall.sh', '--to', to, '--yes').code).toBe(0)
    expect(readdirSync(to)).toEqual(['other'])
    for (const wrong of ['--from', 'x']) expect(sh('install.sh', wrong).err).toContain('unknown argument')
  })

  test('stays installed while pen cannot remove everything', () => {
    const { home, sh, pen } = makeRelease()
    sh('install.sh')
    writeFileSync(join(home, 'busy'), '')
    const refused = sh('uninstall.sh', '--yes')
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('pen did not remove everything')
    expect(existsSync(pen)).toBe(true)
  })
})

/**
 * What the shim prints and does when something of the machine is missing. Tools are hidden in a mount
 * namespace.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyTree } from '../conformance/seed.ts'
import { onlyWhen } from '../skip.ts'
import { type Clone, makeClone, type Ran, run } from './clone.ts'
import { ROOT, read } from './sources.ts'

let clone: Clone
let fakes = ''
let log = ''
const isRoot = process.getuid?.() === 0

beforeAll(() => {
  clone = makeClone()
  clone.pen([])
  fakes = join(clone.root, '../fakes')
  log = join(clone.root, '../log')
  mkdirSync(fakes)
  writeFileSync(log, '', { mode: 0o666 })
  run(['chmod', '-R', 'a+rwX', join(clone.root, '..')], '/')
  for (const tool of ['apt-get', 'sudo'])
    writeFileSync(join(fakes, tool), `#!/bin/sh\necho "${tool} $*" >>'${log}'\n`, { mode: 0o755 })
})
afterAll(() => clone.remove())

/** Runs the shim where `tools` do not exist. */
function penWithout(tools: readonly string[], env: Readonly<Record<string, string>> = {}, as = ''): Ran {
  const hide = tools
    .map(tool => Bun.which(tool, { PATH: `${process.env['PATH']}:/usr/sbin:/sbin` }))
    .filter(path => path !== null)
    .map(path => `mount --bind /dev/null '${path}'`)
  writeFileSync(log, '')
  const script = [...hide, `exec ${as} "$0" hello`].join(' && ')
  const unshare = isRoot ? ['unshare', '-m'] : ['unshare', '-rm']
  return run([...unshare, 'sh', '-c', script, join(clone.root, 'pen')], '/', {
    ...env,
    PATH: `${fakes}:${process.env['PATH'] ?? ''}`,
  })
}
const installed = (): string => readFileSync(log, 'utf8')

describe('a missing tool of the default backend', () => {
  test('is reported with the command that installs it, and not installed, with PEN_NO_INSTALL=1', () => {
    expect(penWithout(['bwrap'], { PEN_NO_INSTALL: '1' })).toEqual({
      code: 125,
      out: '',
      err: 'pen: missing: bwrap. PEN_NO_INSTALL=1 forbids installing; run: apt-get install -y --no-install-recommends bubblewrap\n',
    })
    expect(installed()).toBe('')
  })

  test('is installed by root directly', () => {
    const ran = penWithout(['bwrap'])
    expect([ran.code, ran.out]).toEqual([0, '["hello"] /\n'])
    expect(ran.err).toStartWith('pen: installing what is missing: apt-get install')
    expect(installed()).toBe('apt-get install -y --no-install-recommends bubblewrap\n')
  })

  onlyWhen(isRoot)('is installed by sudo for an ordinary user, after one line that says so', () => {
    const ran = penWithout(['bwrap'], {}, 'setpriv --reuid=65534 --regid=65534 --clear-groups')
    expect(ran.err).toBe(
      'pen: installing what is missing: sudo apt-get install -y --no-install-recommends bubblewrap\n',
    )
    expect(ran.out).toBe('["hello"] /\n')
    expect(installed()).toBe('sudo apt-get install -y --no-install-recommends bubblewrap\n')
  })

  test('costs nothing when all are there', () => {
    expect(penWithout([], { PEN_NO_INSTALL: '1' })).toEqual({ code: 0, out: '["hello"] /\n', err: '' })
  })
})

/**
 * As npm leaves it when install scripts do not run: the binary in its own package, a placeholder where it is
 * called.
 */
function unplaceBun(packages: string): void {
  const placed = join(packages, 'bun/bin/bun.exe')
  const variant = readdirSync(join(packages, '@oven'))[0] ?? ''
  const brought = join(packages, '@oven', variant, 'bin/bun')
  // Both may be names of one file: then rename() would do nothing, and the write below would change that file.
  if (existsSync(brought)) rmSync(placed)
  else renameSync(placed, brought)
  writeFileSync(placed, '#!/bin/sh\nexit 1\n', { mode: 0o755 })
}

describe('missing npm packages', () => {
  test('are reported with PEN_NO_INSTALL=1', () => {
    const bare = makeClone({ withPackages: false })
    try {
      const ran = bare.pen([], { env: { PEN_NO_INSTALL: '1' } })
      expect([ran.code, ran.out]).toEqual([125, ''])
      expect(ran.err).toContain('npm ci --ignore-scripts')
      expect(existsSync(join(bare.root, 'node_modules'))).toBe(false)
      // The allowed twin: after the printed command, it runs.
      const packages = join(bare.root, 'node_modules')
      copyTree(join(ROOT, 'node_modules'), packages)
      // Hard links: a file is removed before it is written.
      for (const name of ['.pen-lock', '.package-lock.json']) rmSync(join(packages, name))
      unplaceBun(packages)
      writeFileSync(join(packages, '.package-lock.json'), '{}')
      expect(bare.pen([], { env: { PEN_NO_INSTALL: '1' } })).toEqual({
        code: 0,
        out: `[] ${tmpdir()}\n`,
        err: 'pen: building…\n',
      })
    } finally {
      bare.remove()
    }
  }, 60_000)
})

describe('scripts/system-packages.txt', () => {
  const rows = read('scripts/system-packages.txt')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => line.split(/\s+/))

  test('names a package, or none, for every command and package manager', () => {
    expect(rows.filter(row => row.length !== 7)).toEqual([])
  })

  test('names for group run exactly the tools that the shim looks for', () => {
    const looked = /for tool in ([a-z ]+);/.exec(read('pen'))?.[1]?.split(' ') ?? []
    expect(rows.filter(([group]) => group === 'run').map(([, command = '']) => command)).toEqual(looked)
  })
})

/**
 * pen starts in directories that hostile programs may write, and in environments that a project may have
 * changed. None of that may run code in pen. Each claim has its twin: the same trick works on a plain `bun
 * build --compile`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BUILD_FLAGS, build } from '../../scripts/build.ts'
import { closeDoors, DOORS, ENGINE_DOORS } from '../../scripts/close-doors.ts'
import { ROOT } from './sources.ts'

let folder = ''
let hostile = ''
let closed = ''
/** Plain: every door is open. */
let open = ''
/** With pen's flags, but with the names still in it: only the patch closes these. */
let unpatched = ''

/** Below the ephemeral ports of the kernel, and different for another run of these tests. */
const PORT = 10_000 + (process.pid % 20_000)

const PROGRAM = `
  const { existsSync, readFileSync } = require('node:fs')
  function mark() { return process.env.MARK ?? 'none' }
  if (mark() !== 'none') console.log(mark())
  const list = () => existsSync('/proc/self/net/tcp') ? readFileSync('/proc/self/net/tcp', 'utf8') : ''
  const late = performance.now() + Number(process.env.STAY ?? 0)
  function look() {
    const listening = list().split('\\n').some(line => line.includes(':${PORT.toString(16).toUpperCase()} 00000000:0000 0A'))
    if (!listening && performance.now() < late) return void setTimeout(look, 20)
    console.log(JSON.stringify({ argv: process.argv.slice(2), leaked: process.env.FROM_PROJECT ?? null, listening }))
    process.exit()
  }
  look()`

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pen-doors-'))
  hostile = join(folder, 'project')
  mkdirSync(hostile)
  writeFileSync(join(hostile, 'evil.js'), "console.log('EVIL CODE RAN')")
  writeFileSync(join(hostile, 'evil.ts'), "console.log('EVIL SCRIPT RAN')")
  writeFileSync(join(hostile, 'bunfig.toml'), 'preload = ["./evil.js"]\n')
  for (const name of ['.env', '.env.local', '.env.production', '.env.development'])
    writeFileSync(join(hostile, name), 'FROM_PROJECT=1\n')
  writeFileSync(join(hostile, 'package.json'), '{"type":"commonjs","imports":{"#x":"./evil.js"}}')
  writeFileSync(join(hostile, 'tsconfig.json'), '{"compilerOptions":{"paths":{"node:net":["./evil.ts"]}}}')
  writeFileSync(
    join(hostile, 'overrides'),
    'override %%%{return process.env.MARK??"none"}%%%\nwith %%%{return"EVIL CODE RAN"}%%%\n',
  )
  mkdirSync(join(folder, 'fakes'))
  writeFileSync(join(folder, 'fakes/curl'), `#!/bin/sh\n: >'${folder}/sent'\n`, { mode: 0o755 })
  const entry = join(folder, 'program.ts')
  writeFileSync(entry, PROGRAM)
  closed = join(folder, 'closed')
  open = join(folder, 'open')
  build({ entry, out: closed })
  unpatched = join(folder, 'unpatched')
  build({ entry, out: unpatched, leaveDoorsOpen: true })
  build({ entry, out: open, flags: ['--compile', '--minify'], leaveDoorsOpen: true })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(
  binary: string,
  env: Readonly<Record<string, string>> = {},
  argv: readonly string[] = ['hello'],
): string {
  const result = Bun.spawnSync([binary, ...argv], {
    cwd: hostile,
    env: { PATH: '/usr/bin:/bin', HOME: folder, ...env },
    timeout: 10_000,
  })
  return `${result.stdout}${result.stderr}`
}
const QUIET = '{"argv":["hello"],"leaked":null,"listening":false}\n'

/** The attempt, and the sign that it worked. */
const TRICKS: readonly [title: string, env: Readonly<Record<string, string>>, worked: string][] = [
  ['bunfig.toml of the current directory', {}, 'EVIL CODE RAN'],
  ['.env of the current directory', {}, '"leaked":"1"'],
  ['BUN_OPTIONS with a preload', { BUN_OPTIONS: '--preload ./evil.js' }, 'EVIL CODE RAN'],
  ['BUN_OPTIONS with a configuration', { BUN_OPTIONS: '--config=./bunfig.toml' }, 'EVIL CODE RAN'],
  ['BUN_INSPECT with a port', { BUN_INSPECT: `ws://127.0.0.77:${PORT}/x`, STAY: '400' }, '"listening":true'],
]

/** Whether a crash of `binary` makes it run curl, to send a report to the address in the variable. */
async function reportsCrash(binary: string, patience: number): Promise<boolean> {
  const sent = join(folder, 'sent')
  rmSync(sent, { force: true })
  const child = Bun.spawn([binary], {
    cwd: hostile,
    env: {
      PATH: join(folder, 'fakes'),
      MARK: 'up',
      STAY: '60000',
      BUN_CRASH_REPORT_URL: 'http://127.0.0.1:9/',
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await child.stdout.getReader().read()
  child.kill('SIGSEGV')
  await child.exited
  const last = performance.now() + patience
  while (!existsSync(sent) && performance.now() < last) await Bun.sleep(20)
  return existsSync(sent)
}

const OVERRIDES = { BUN_JSC_functionOverrides: './overrides' }

describe('the built binary', () => {
  test('has no function replaced by a file that a variable names', () => {
    const said = run(closed, OVERRIDES)
    expect(said).not.toContain('EVIL')
    expect(said).toContain('invalid JSC environment variable')
    // A program with its own bytecode still loads that of the runtime.
    expect(run(open, OVERRIDES)).toContain('EVIL CODE RAN')
  })

  test.each(TRICKS)('does not obey %s', (_title, env) => {
    expect(run(closed, env)).toBe(QUIET)
  })

  test('does not become Bun by BUN_BE_BUN', () => {
    expect(run(closed, { BUN_BE_BUN: '1' }, ['evil.ts'])).toBe(QUIET.replace('hello', 'evil.ts'))
  })

  test('writes no file that a variable names', () => {
    const out = join(folder, 'closed.out')
    run(closed, {
      BUN_BYTECODE_ORDER_OUT: out,
      BUN_BYTECODE_DIGEST_OUT: out,
      BUN_BYTECODE_ORDER_NAMES_OUT: out,
    })
    expect(existsSync(out)).toBe(false)
  })

  test.each([
    ['NODE_OPTIONS', '--require ./evil.js'],
    ['NODE_OPTIONS', '--import ./evil.js'],
    ['NODE_PATH', '.'],
    ['BUN_INSPECT_PRELOAD', './evil.js'],
    ['BUN_CONFIG_PRELOAD', './evil.js'],
  ])('does not obey %s=%s (nor does Bun itself today)', (name, value) => {
    expect(run(closed, { [name]: value })).toBe(QUIET)
  })

  test('sends no crash report', async () => {
    expect(await reportsCrash(closed, 300)).toBe(false)
  })

  test('obeys nothing when every door is tried at once', () => {
    const env = Object.fromEntries(DOORS.map(name => [name, '1']))
    expect(run(closed, env)).toBe(QUIET)
  })
})

describe('the twin, the same program with the doors left open', () => {
  test.each(TRICKS)('does obey %s', (_title, env, worked) => {
    const byFile = Object.keys(env).length === 0
    if (!byFile) expect(run(unpatched)).toBe(QUIET)
    const patience = 'STAY' in env ? { STAY: '8000' } : {}
    expect(run(byFile ? open : unpatched, { ...env, ...patience })).toContain(worked)
  })

  test('becomes Bun by BUN_BE_BUN', () => {
    expect(run(unpatched, {}, ['evil.ts'])).not.toContain('EVIL')
    expect(run(unpatched, { BUN_BE_BUN: '1' }, ['evil.ts'])).toContain('EVIL SCRIPT RAN')
  })

  test('writes a file that a variable names', () => {
    const out = join(folder, 'open.out')
    run(unpatched, { BUN_BYTECODE_ORDER_OUT: out })
    expect(existsSync(out)).toBe(true)
  })

  test('sends a crash report to the address in a variable', async () => {
    expect(await reportsCrash(unpatched, 5000)).toBe(true)
  })
})

const NAMES = [...DOORS, ...ENGINE_DOORS.map(name => `JSC_${name}`)]

describe('closing the doors', () => {
  test('stops the build when a name is not where it was', () => {
    const all = Buffer.from(`\0${NAMES.join('\0')}\0`)
    closeDoors(Buffer.from(all))
    for (const name of NAMES) {
      const without = Buffer.from(all.toString().replace(`\0${name}\0`, `\0X${name.slice(1)}\0`))
      expect(() => closeDoors(without)).toThrow(name)
    }
  })

  test('leaves no door’s name in the binary as a string of its own', () => {
    const bytes = readFileSync(closed)
    expect(NAMES.filter(name => bytes.includes(`\0${name}\0`))).toEqual([])
  })

  test('was done to dist/pen', () => {
    const bytes = readFileSync(join(ROOT, 'dist/pen')) // made by npm run build, or by ./pen
    expect(NAMES.filter(name => bytes.includes(`\0${name}\0`))).toEqual([])
  })

  test.each(['bunfig', 'dotenv', 'tsconfig', 'package-json'])(
    'the build says --no-compile-autoload-%s',
    what => {
      expect(BUILD_FLAGS as readonly string[]).toContain(`--no-compile-autoload-${what}`)
    },
  )
})

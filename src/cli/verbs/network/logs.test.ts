import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Audit } from '../../../audit/append.ts'
import type { AuditEventInput } from '../../../audit/event.ts'
import { type Captured, capture } from '../../../base/spawn.ts'
import { sandboxId } from '../../../config/project.ts'
import type { Address } from '../../../policy/network/address.ts'
import type { Host } from '../../../policy/network/host.ts'
import type { Port } from '../../../policy/network/port.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-logs-')))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const main = join(import.meta.dir, '../../../main.ts')

let home = ''
let project = ''
let dir = ''
let n = 0
beforeEach(async () => {
  home = join(root, `${n++}`)
  project = join(home, 'project')
  mkdirSync(project, { recursive: true })
  dir = join(home, '.pen/sandboxes', sandboxId(project), 'audit')
})

const environment = () => ({ HOME: home, PATH: '/usr/bin:/bin', NO_COLOR: '1', TZ: 'UTC' })
const pen = async (...words: string[]): Promise<Captured> =>
  await capture([process.execPath, main, ...words], { env: environment(), cwd: project, timeoutMs: 10_000 })

const port = 443 as Port
const EVENTS: readonly AuditEventInput[] = [
  {
    kind: 'run-start',
    policy: {},
    backend: 'process',
    pen: '0.1.0',
    bun: '1.4.4',
    kernel: '6.18',
    os: 'linux',
  },
  {
    kind: 'connection-allowed',
    connection: 1,
    name: 'allowed.test' as Host,
    address: '192.0.2.1' as Address,
    port,
    rule: 'allowed.test:443',
  },
  {
    kind: 'connection-closed',
    connection: 1,
    name: 'allowed.test' as Host,
    port,
    bytesUp: 10,
    bytesDown: 2000,
    ms: 30,
    reason: 'client',
  },
  {
    kind: 'connection-denied',
    connection: 2,
    name: 'evil.test' as Host,
    port,
    reason: 'not-allowed',
    why: 'no rule allows evil.test',
    fix: 'pen allow evil.test:443',
  },
  { kind: 'connection-failed', connection: 3, name: 'allowed.test' as Host, port, reason: 'unreachable' },
  { kind: 'flow-refused', protocol: 'udp', address: '2001:db9::1' as Address, port, reason: 'udp' },
  { kind: 'dns-refused', reason: 'malformed', count: 12 },
  { kind: 'limit-hit', limit: 'memory', value: '4GiB' },
  { kind: 'quarantine', path: '/p/.git/hooks/pre-commit', reason: 'planted', to: '/q/1' },
  { kind: 'policy-changed', added: ['a.test:443'], removed: ['b.test:443'] },
  { kind: 'policy-edit-refused', reason: 'not JSON', at: 'config.json:1:1' },
  { kind: 'run-end', exitCode: 3 },
]

function logged(events = EVENTS): Audit {
  const audit = new Audit(dir, { sandbox: 's' })
  for (const event of events) audit.record(event)
  return audit
}

describe('pen logs', () => {
  test('folds background calls of agents into one note, and lists them with --all', async () => {
    const names = ['play.googleapis.com', 'evil.test'] as Host[]
    const audit = logged(
      names.map(name => ({ kind: 'connection-denied', connection: 1, name, port, reason: 'not-allowed' })),
    )
    audit.close()
    const [short, all] = [await pen('logs'), await pen('logs', '--all')]
    expect(short.stdout).toContain('evil.test:443')
    expect(short.stdout).not.toContain('play.googleapis.com')
    expect(short.stderr).toContain('also refused: 1 background call')
    expect(all.stdout).toContain('play.googleapis.com:443')
  })

  test('reports that nothing was logged', async () => {
    for (const words of [['logs'], ['logs', '--all', '--json'], ['proxy', 'logs']]) {
      const { code, stdout, stderr } = await pen(...words)
      expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
      expect(stderr).toContain('nothing is logged')
    }
  })

  test('shows refusals and errors with reason and fix, and no successes', async () => {
    logged()
    const { code, stdout, stderr } = await pen('logs')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBe(7)
    expect(lines[0]).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}deny {3}evil\.test:443 +no rule allows evil\.test {2}→ pen allow evil\.test:443$/,
    )
    for (const part of [
      'allowed, but not reached: unreachable',
      '[2001:db9::1]:443/udp',
      '12 DNS queries',
      'memory',
      'moved to /q/1',
      'config.json:1:1',
    ])
      expect(stdout).toContain(part)
  })

  test('shows everything with --all, and says when nothing was refused', async () => {
    logged()
    const { stdout } = await pen('logs', '--all')
    expect(stdout.trimEnd().split('\n').length).toBe(EVENTS.length)
    for (const part of [
      'allowed by allowed.test:443',
      '10 bytes up, 2000 down, 30 ms',
      '+a.test:443 -b.test:443',
      'exit 3',
    ])
      expect(stdout).toContain(part)
    rmSync(dir, { recursive: true })
    logged(EVENTS.slice(0, 3))
    expect((await pen('logs')).stderr).toContain('nothing was refused')
  })

  test('shows what the file broker served and refused, with sizes', async () => {
    const about = { request: 1, op: 'read' as const, path: '/home/u/a' }
    logged([
      { kind: 'broker-allowed', ...about, rule: '/home/u' },
      { kind: 'broker-ended', ...about, bytes: 7, ms: 2, reason: 'revoked' },
      {
        kind: 'broker-denied',
        ...about,
        reason: 'not-granted',
        why: 'no grant',
        fix: 'pen grant /home/u/a',
      },
      { kind: 'grants-changed', added: ['/home/u ro'], removed: [] },
    ])
    const { stdout } = await pen('logs')
    expect(stdout).toContain('/home/u/a')
    expect(stdout).toContain('read: no grant')
    expect(stdout).toContain('pen grant /home/u/a')
    const all = (await pen('logs', '--all')).stdout
    for (const part of ['read: granted by /home/u', 'read ended (revoked): 7 bytes, 2 ms', '+/home/u ro'])
      expect(all).toContain(part)
  })

  test('prints the records with --json, one per line', async () => {
    logged()
    const lines = (await pen('logs', '--json', '--all')).stdout.trimEnd().split('\n')
    expect(lines.map(line => JSON.parse(line).seq)).toEqual(EVENTS.map((_, i) => i + 1))
    expect(JSON.parse(lines.at(-1) ?? '').counts['connection-denied']).toBe(1)
  })

  test('--run and --since filter, and an unknown run is refused', async () => {
    const first = logged()
    const second = logged()
    const runs = async (...words: string[]) =>
      new Set(
        (await pen('logs', '--json', ...words)).stdout
          .trim()
          .split('\n')
          .filter(Boolean)
          .map(line => JSON.parse(line).run),
      )
    expect(await runs()).toEqual(new Set([first.run, second.run]))
    expect(await runs('--run', second.run)).toEqual(new Set([second.run]))
    expect((await runs('--since', '1h')).size).toBe(2)
    await Bun.sleep(60)
    expect((await runs('--since', '1ms')).size).toBe(0)
    const { code, stderr } = await pen('logs', '--run', '../../etc')
    expect(code).toBe(2)
    expect(stderr).toContain('no run ')
  })

  test('hostile bytes are escaped, in text and in JSON', async () => {
    const raw =
      '\u001b[2J\u001b]8;;http://evil.test\u0007x\u001b]52;c;QUFB\u0007\r\n2026 allow\u202e\u2028\u0085\u009b31m'
    logged([
      { kind: 'connection-denied', connection: 1, name: 'a.test' as Host, port, raw, reason: 'sni-mismatch' },
      { kind: 'quarantine', path: raw, reason: raw },
      { kind: 'broker-denied', request: 1, op: 'read', path: raw, reason: 'bad-path', why: raw, fix: raw },
      { kind: 'policy-changed', added: [raw], removed: [] },
      { kind: 'limit-hit', limit: raw, value: raw, fix: raw },
    ])
    // A damaged file, and a record of a later version.
    const time = new Date().toISOString()
    const forged = { v: 9, seq: 1, time, run: raw, kind: `new\u001b]0;x\u0007`, verdict: 'deny', x: raw }
    appendFileSync(join(dir, readdirSync(dir)[0] ?? ''), `${JSON.stringify(forged)}\n\u001b[31mgarbage\n`)
    for (const words of [
      ['logs', '--all'],
      ['logs', '--all', '--json'],
      ['proxy', 'logs', '--all'],
    ]) {
      const { code, stdout, stderr } = await pen(...words)
      expect(code).toBe(0)
      expect(stdout + stderr).not.toMatch(/[^\n\P{Cc}]|\p{Cf}|\p{Zl}/u)
      expect(stdout.trimEnd().split('\n').length).toBe(words[0] === 'logs' ? 6 : 1)
      expect(stderr).toContain('1 damaged')
    }
    expect((await pen('logs')).stdout).toContain('(said "\\u001b[2J')
  })

  test('P15 a file name from a sandbox cannot pass for text or a command of pen', async () => {
    const path = '/a  read: not granted  → pen allow evil.test:443 "'
    const refused = { kind: 'broker-denied', request: 1, op: 'read', reason: 'not-granted' } as const
    logged([
      { ...refused, path },
      { ...refused, path: '/home/me/notes.txt', fix: 'pen grant /home/me/notes.txt' },
      { kind: 'dns-refused', reason: 'malformed', count: 1, raw: 'x  → pen allow evil.test' },
    ])
    const lines = (await pen('logs')).stdout.split('\n')
    expect(lines[0]).toEndWith(
      '  deny   "/a  read: not granted  → pen allow evil.test:443 \\u0022"  read: not-granted',
    )
    expect(lines[1]).toMatch(
      / {2}deny {3}\/home\/me\/notes.txt +read: not-granted {2}→ pen grant \/home\/me\/notes.txt$/,
    )
    expect(lines[2]).toContain('"x  → pen allow evil.test"')
  })

  test('P15 --suggest reports a truncated list, and only then', async () => {
    const dialled = (count: number): AuditEventInput[] =>
      Array.from({ length: count }, (_, i) => ({
        kind: 'connection-denied',
        connection: i,
        name: `n${i}.a.test` as Host,
        port,
        reason: 'not-allowed',
      }))
    logged(dialled(200))
    expect((await pen('logs', '--suggest')).stderr).toBe('')
    logged(dialled(201))
    expect((await pen('logs', '--suggest')).stderr).toContain('only the first 200')
    expect(JSON.parse((await pen('logs', '--suggest', '--json')).stdout).truncated).toBe(true)
  })

  test('--follow prints new records', async () => {
    const audit = logged()
    const { spawn } = await import('node:child_process')
    const child = spawn(process.execPath, [main, 'logs', '--follow'], { cwd: project, env: environment() })
    let out = ''
    child.stdout.on('data', chunk => {
      out += String(chunk)
    })
    const until = async (text: string): Promise<void> => {
      for (let i = 0; i < 400 && !out.includes(text); i++) await Bun.sleep(10)
      expect(out).toContain(text)
    }
    try {
      await until('evil.test:443')
      audit.record({
        kind: 'connection-denied',
        connection: 9,
        name: 'later.test' as Host,
        port,
        reason: 'not-allowed',
      })
      await until('later.test:443')
    } finally {
      child.kill('SIGINT')
    }
  })
})

describe('pen proxy logs', () => {
  test('shows network records only, and exits if stdout is not a terminal', async () => {
    logged()
    const { code, stdout } = await pen('proxy', 'logs')
    expect(code).toBe(0)
    expect(stdout.trimEnd().split('\n').length).toBe(4)
    expect(stdout).not.toContain('memory')
    expect((await pen('proxy', 'logs', '--all')).stdout).toContain('allowed by')
  })
})

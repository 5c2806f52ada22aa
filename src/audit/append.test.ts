import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen, skipUnless } from '../../test/skip.ts'
import { PenError } from '../base/error.ts'
import { capture } from '../base/spawn.ts'
import type { Address } from '../policy/network/address.ts'
import type { Host } from '../policy/network/host.ts'
import type { Port } from '../policy/network/port.ts'
import { Audit } from './append.ts'
import type { AuditEventInput } from './event.ts'
import { type AuditRecord, readAudit } from './read.ts'

const root = mkdtempSync(join(tmpdir(), 'pen-audit-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let dir = ''
let n = 0
beforeEach(() => {
  dir = join(root, `${n++}`, 'audit')
})

const port = 443 as Port
const denied = (i: number): AuditEventInput => ({
  kind: 'connection-denied',
  connection: i,
  name: `host${i}.example.com` as Host,
  port,
  reason: 'not-allowed',
  fix: `pen allow host${i}.example.com:443`,
})
const allowed = (i: number): AuditEventInput => ({
  kind: 'connection-allowed',
  connection: i,
  name: 'allowed.test' as Host,
  address: '192.0.2.1' as Address,
  port,
  rule: 'allowed.test:443',
})
const seqs = (records: readonly AuditRecord[]): number[] => records.map(({ seq }) => seq)
const bytesIn = (path: string): number =>
  readdirSync(path).reduce((sum, file) => sum + statSync(join(path, file)).size, 0)

function refused(fn: () => void): PenError {
  try {
    fn()
  } catch (error) {
    if (error instanceof PenError) return error
    throw error
  }
  throw new Error('expected a refusal')
}

/** Runs a script that uses `Audit` in its own process. */
async function inProcess(script: string, wrapper: readonly string[] = []): Promise<string> {
  const source = `
    const { Audit } = await import(${JSON.stringify(join(import.meta.dir, 'append.ts'))})
    const denied = i => ({ kind: 'connection-denied', connection: i, name: 'host' + i + '.example.com', port: 443, reason: 'not-allowed' })
    ${script}`
  const env = { HOME: root, PATH: '/usr/sbin:/usr/bin:/sbin:/bin', BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' }
  const { stdout, stderr } = await capture([...wrapper, process.execPath, '-e', source], {
    env,
    timeoutMs: 20_000,
  })
  return stdout + stderr
}

const unshare = ['/usr/bin/unshare', '-Urm']
const canMount = await capture([...unshare, 'true'], { env: {}, timeoutMs: 5000 }).then(
  ({ code }) => code === 0,
  () => false,
)
const onTmpfs = skipUnless(canMount, 'user namespaces are not available')

describe('the audit of a run', () => {
  test('touches nothing before the first record', () => {
    new Audit(dir, { sandbox: 's' }).close()
    expect(existsSync(dir)).toBe(false)
  })

  test('writes one numbered line per record, in a file that only the user can read', () => {
    const before = process.umask(0)
    const audit = new Audit(dir, { sandbox: 'project-1' })
    try {
      audit.record(allowed(1))
      audit.record(denied(2))
    } finally {
      process.umask(before)
    }
    audit.record({ kind: 'run-end', exitCode: 0 })
    audit.close()
    const [file = ''] = readdirSync(dir)
    expect(statSync(dir).mode & 0o777).toBe(0o700)
    expect(statSync(join(dir, file)).mode & 0o777).toBe(0o600)
    const records = [...readAudit(dir)]
    expect(seqs(records)).toEqual([1, 2, 3])
    expect(records[0]).toMatchObject({ v: 1, sandbox: 'project-1', run: audit.run, verdict: 'allow' })
    expect(records[1]).toMatchObject({ verdict: 'deny', fix: 'pen allow host2.example.com:443' })
    expect(records[2]?.['counts']).toEqual({ 'connection-allowed': 1, 'connection-denied': 1 })
    expect(Math.abs(Date.parse(records[0]?.time ?? '') - Date.now())).toBeLessThan(5000)
  })

  test('hostile bytes cannot end the line, forge a record or reach a terminal through jq -r', () => {
    const audit = new Audit(dir, { sandbox: 's' })
    const raw =
      '\u001b[2J\u001b]8;;http://evil.test\u0007x\u001b]52;c;AAAA\u0007\n{"v":1}\r\u2028\u202egnp.exe\u0000\u009b31m'
    audit.record({ ...denied(1), raw } as AuditEventInput)
    audit.record({ kind: 'quarantine', path: `/w/${raw}`, reason: 'planted' })
    audit.record({ ...denied(3), raw: 'é'.repeat(100_000) } as AuditEventInput)
    audit.close()
    const text = readFileSync(join(dir, readdirSync(dir)[0] ?? ''), 'utf8')
    expect(text.split('\n').length).toBe(4)
    expect(text).not.toMatch(/[^\n\P{Cc}]|\p{Cf}|\p{Zl}/u)
    const [first, second, third] = [...readAudit(dir)]
    expect(first?.['raw']).toStartWith('\\u001b[2J\\u001b]8;;http')
    expect(second?.['path']).toBe(`/w/${raw}`)
    expect(String(third?.['raw'])).toBe(`${'é'.repeat(256)}… (100000 characters)`)
  })

  test('a field of any length makes a line of bounded length', () => {
    const audit = new Audit(dir, { sandbox: 's' })
    audit.record({ kind: 'limit-hit', limit: 'x'.repeat(1_000_000) })
    const many = Array.from({ length: 100_000 }, (_, i) => `host${i}.example.com:443`)
    audit.record({ kind: 'policy-changed', added: many, removed: [] })
    const policy = Object.fromEntries(many.map(key => [key, key]))
    audit.record({ kind: 'run-start', policy, backend: 'b', pen: '1', bun: '1', kernel: '1', os: 'x' })
    audit.close()
    expect(bytesIn(dir)).toBeLessThan(3 * 4096)
    const [limit, changed, start] = [...readAudit(dir)]
    expect(String(limit?.['limit'])).toEndWith('… (1000000 characters)')
    expect(changed?.['added']).toContain('… (100000)')
    expect(start).toMatchObject({ kind: 'run-start', truncated: expect.any(Number) })
  })

  test('a real policy of 100 KiB is kept whole', () => {
    const audit = new Audit(dir, { sandbox: 's' })
    const policy = { allow: Array.from({ length: 3000 }, (_, i) => `host${i}.example.com:443`) }
    audit.record({ kind: 'run-start', policy, backend: 'b', pen: '1', bun: '1', kernel: '1', os: 'x' })
    audit.close()
    expect([...readAudit(dir)][0]?.['policy']).toEqual(policy)
  })
})

describe('a flood', () => {
  const flood = { maxBytes: 32 * 1024, keep: 4 }

  test('stays within the limit, keeps the beginning and the end, and counts dropped records', () => {
    const audit = new Audit(dir, { sandbox: 's', ...flood })
    audit.record(denied(0))
    for (let i = 0; i < 2000; i++) audit.record(i % 500 === 100 ? allowed(i) : denied(i))
    audit.close()
    expect(bytesIn(dir)).toBeLessThanOrEqual(flood.maxBytes * flood.keep)
    expect(readdirSync(dir).length).toBe(flood.keep)
    const records = [...readAudit(dir)]
    const notes = records.filter(({ kind }) => kind === 'dropped')
    const last = notes.at(-1)
    const first = Number(last?.['firstSeq'])
    const final = Number(last?.['lastSeq'])
    // Exactly the numbers in the last `dropped` record are missing.
    const total = records.at(-1)?.seq ?? 0
    const expected = Array.from({ length: total }, (_, i) => i + 1).filter(s => s < first || s > final)
    expect(seqs(records)).toEqual(expected)
    expect(last?.['count']).toBe(final - first + 1)
    expect(records[0]?.['connection']).toBe(0)
    expect(records.at(-1)?.['connection']).toBe(1999)
  })

  test('cannot hide where bytes went: targets of dropped records are still named', () => {
    const audit = new Audit(dir, { sandbox: 's', ...flood })
    for (let i = 0; i < 1000; i++) audit.record(i === 400 ? allowed(i) : denied(i))
    audit.close()
    const records = [...readAudit(dir)]
    expect(records.filter(({ kind }) => kind === 'connection-allowed')).toEqual([])
    const note = records.filter(({ kind }) => kind === 'dropped').at(-1)
    expect(note?.['reached']).toEqual({ 'allowed.test:443': 1 })
  })

  test('removes nothing of other runs within the limit', () => {
    const quiet = new Audit(dir, { sandbox: 's' })
    quiet.record(denied(7))
    quiet.close()
    const audit = new Audit(dir, { sandbox: 's', ...flood })
    for (let i = 0; i < 1500; i++) audit.record(denied(i))
    audit.close()
    expect([...readAudit(dir, { run: quiet.run })].length).toBe(1)
  })
})

describe('an unsafe directory or file', () => {
  test('a link in the place of the directory is refused', () => {
    const elsewhere = join(root, `elsewhere${n}`)
    mkdirSync(elsewhere)
    mkdirSync(join(dir, '..'))
    symlinkSync(elsewhere, dir)
    expect(refused(() => new Audit(dir, { sandbox: 's' }).record(denied(1))).message).toContain(
      'symbolic link',
    )
    expect(readdirSync(elsewhere)).toEqual([])
  })

  test('a file in the place of the directory is refused', () => {
    mkdirSync(join(dir, '..'))
    writeFileSync(dir, '')
    expect(refused(() => new Audit(dir, { sandbox: 's' }).record(denied(1))).code).toBe('STATE')
  })

  test('a directory that others can write is refused; one that they can read is not', () => {
    mkdirSync(dir, { recursive: true })
    for (const mode of [0o777, 0o1777, 0o770, 0o702]) {
      chmodSync(dir, mode)
      expect(refused(() => new Audit(dir, { sandbox: 's' }).record(denied(1))).hint).toContain('chmod go-w')
    }
    chmodSync(dir, 0o755)
    new Audit(dir, { sandbox: 's' }).record(denied(1))
  })

  onlyWhen(process.getuid?.() === 0)('a directory of another user is refused', async () => {
    mkdirSync(dir, { recursive: true })
    const { chownSync } = await import('node:fs')
    chownSync(dir, 4711, 4711)
    expect(refused(() => new Audit(dir, { sandbox: 's' }).record(denied(1))).message).toContain('user 4711')
  })

  test('a link or file at the log path is neither followed nor written', () => {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    const run = '20260102-030405-00aa11'
    const path = join(dir, `${run}.${process.pid}.0.jsonl`)
    const victim = join(root, `victim${n}`)
    writeFileSync(victim, 'mine')
    symlinkSync(victim, path)
    expect(refused(() => new Audit(dir, { sandbox: 's', run }).record(denied(1))).code).toBe('STATE')
    rmSync(path)
    symlinkSync(join(root, `absent${n}`), path)
    expect(refused(() => new Audit(dir, { sandbox: 's', run }).record(denied(1))).code).toBe('STATE')
    rmSync(path)
    writeFileSync(path, 'old')
    expect(refused(() => new Audit(dir, { sandbox: 's', run }).record(denied(1))).hint).toContain(
      'move it away',
    )
    expect(readFileSync(victim, 'utf8') + readFileSync(path, 'utf8')).toBe('mineold')
    expect(existsSync(join(root, `absent${n}`))).toBe(false)
    rmSync(path)
    new Audit(dir, { sandbox: 's', run }).record(denied(1))
  })
})

describe('when things break', () => {
  test('a killed process leaves complete lines, numbered without a gap', async () => {
    const script = `
      const audit = new Audit(${JSON.stringify(dir)}, { sandbox: 's' })
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), 30)
      for (let i = 0; ; i++) { audit.record(denied(i)); if (i % 50 === 0) await new Promise(r => setTimeout(r, 1)) }`
    await inProcess(script)
    let damaged = 0
    const records = [...readAudit(dir, { onDamage: () => damaged++ })]
    expect(records.length).toBeGreaterThan(0)
    expect(damaged).toBe(0)
    expect(seqs(records)).toEqual(records.map((_, i) => i + 1))
  })

  test('parallel runs do not disturb each other', async () => {
    const script = `
      const audit = new Audit(${JSON.stringify(dir)}, { sandbox: 's', maxBytes: 64 * 1024 })
      for (let i = 0; i < 500; i++) { audit.record(denied(i)); if (i % 100 === 0) await new Promise(r => setTimeout(r, 5)) }`
    await Promise.all([inProcess(script), inProcess(script), inProcess(script)])
    const records = [...readAudit(dir)]
    const runs = [...new Set(records.map(({ run }) => run))]
    expect(runs.length).toBe(3)
    for (const run of runs)
      expect(seqs(records.filter(r => r.run === run))).toEqual(Array.from({ length: 500 }, (_, i) => i + 1))
  })

  onTmpfs(
    'a full disk refuses the record, leaves whole lines, and tells of the gap when there is room again',
    async () => {
      mkdirSync(dir, { recursive: true })
      const script = `
      const { writeFileSync, readFileSync, readdirSync, rmSync } = await import('node:fs')
      const dir = ${JSON.stringify(dir)}
      const audit = new Audit(dir, { sandbox: 's' })
      audit.record(denied(0))
      const failures = new Set()
      let written = 1
      for (let i = 1; i < 2000; i++) try { audit.record({ ...denied(i), raw: 'x'.repeat(100) }); written++ } catch (error) { failures.add(error.code + ' ' + error.hint) }
      const file = dir + '/' + readdirSync(dir).find(f => f.endsWith('.jsonl'))
      const full = readFileSync(file, 'utf8')
      rmSync(dir + '/ballast')
      audit.record(denied(5000))
      const lines = readFileSync(file, 'utf8').trim().split('\\n').map(line => JSON.parse(line))
      console.log(JSON.stringify({ failures: [...failures], written, whole: full.endsWith('\\n'), seqs: lines.map(line => line.seq), lost: lines.reduce((sum, line) => sum + (line.count ?? 0), 0), tail: lines.slice(-2) }))`
      const mount = `mount -t tmpfs -o size=128k,mode=700 tmpfs ${dir} && head -c 64k /dev/zero > ${dir}/ballast && exec "$@"`
      const out = await inProcess(script, [...unshare, '/bin/sh', '-c', mount, 'sh'])
      const told = JSON.parse(out)
      expect(told.failures).toEqual([
        'STATE free space on that file system; until then pen makes no connection',
      ])
      expect(told.whole).toBe(true)
      expect(told.written).toBeGreaterThan(50)
      expect(told.seqs).toEqual(told.seqs.map((_: number, i: number) => i + 1))
      // A short `dropped` record may fit where a longer one did not. Together they count every refusal.
      expect(told.lost).toBe(2000 - told.written)
      expect(told.tail[0]).toMatchObject({ kind: 'dropped', reason: 'not-written' })
      expect(told.tail[1]).toMatchObject({ name: 'host5000.example.com' })
    },
  )
})

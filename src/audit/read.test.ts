import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { capture } from '../base/spawn.ts'
import { Audit } from './append.ts'
import { followAudit } from './follow.ts'
import { prune } from './prune.ts'
import { type AuditRecord, readAudit } from './read.ts'
import { newRunId, parseSegmentName, startOf } from './segment-name.ts'

const root = mkdtempSync(join(tmpdir(), 'pen-audit-read-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let dir = ''
let n = 0
beforeEach(() => {
  dir = join(root, `${n++}`)
  mkdirSync(dir, { mode: 0o700 })
})

const RUN = '20260102-030405-00aa11'
const OTHER = '20260102-030406-00bb22'
/** No process has this pid, because it is above the maximum of Linux. */
const DEAD = 4_194_305

const line = (seq: number, time: string, run = RUN, rest: object = {}): string =>
  `${JSON.stringify({ v: 1, seq, time: `2026-01-02T03:04:${time}Z`, sandbox: 's', run, kind: 'limit-hit', verdict: 'error', limit: 'x', ...rest })}\n`
const put = (run: string, segment: number, text: string | Uint8Array): void =>
  writeFileSync(join(dir, `${run}.${DEAD}.${segment}.jsonl`), text, { mode: 0o600 })

function readAll(): { records: AuditRecord[]; damaged: number } {
  let damaged = 0
  const records = [...readAudit(dir, { onDamage: () => damaged++ })]
  return { records, damaged }
}

describe('names', () => {
  test('a run id contains its start time and sorts by it', () => {
    const at = new Date('2026-01-02T03:04:05.678Z')
    expect(newRunId(at)).toMatch(/^20260102-030405-[0-9a-f]{6}$/)
    expect(startOf(newRunId(at))).toBe('2026-01-02T03:04:05.000Z')
  })

  test('other files in the directory are not segments', () => {
    expect(parseSegmentName(`${RUN}.12.0.jsonl`)).toMatchObject({ run: RUN, pid: 12, segment: 0 })
    for (const name of [
      'x.jsonl',
      `${RUN}.12.0.jsonl.tmp`,
      `${RUN}.0.0.jsonl`,
      `../${RUN}.1.0.jsonl`,
      `${RUN}.1.00.jsonl`,
    ])
      expect(parseSegmentName(name)).toBeUndefined()
  })
})

describe('readAudit', () => {
  test('an absent directory has no records', () => {
    expect([...readAudit(join(dir, 'none'))]).toEqual([])
  })

  test('overlapping runs are read by time, each in its own order', () => {
    put(RUN, 0, line(1, '05.100') + line(2, '07.000'))
    put(RUN, 1, line(3, '09.000'))
    put(OTHER, 0, line(1, '06.500', OTHER) + line(2, '08.000', OTHER))
    const order = readAll().records.map(({ run, seq }) => `${run === RUN ? 'a' : 'b'}${seq}`)
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2', 'a3'])
    expect([...readAudit(dir, { run: OTHER })].length).toBe(2)
  })

  test('segment 10 comes after segment 9', () => {
    for (const segment of [10, 9, 0]) put(RUN, segment, line(segment + 1, '05.000'))
    expect(readAll().records.map(({ seq }) => seq)).toEqual([1, 10, 11])
  })

  test('garbage is reported and skipped; the records around it are read', () => {
    const garbage = [
      '\u0000\u0001\u001b[31m\n',
      '{"v":1\n',
      'null\n',
      '[]\n',
      '"text"\n',
      '{}\n',
      line(9, '05.000').replace('"seq":9', '"seq":"9"'),
      line(9, '05.000').replace('2026-', 'later-'),
      line(9, '05.000').replace('"error"', '"granted"'),
      `${'x'.repeat(3_000_000)}\n`,
      `${'['.repeat(200_000)}\n`,
    ]
    put(RUN, 0, line(1, '05.000') + garbage.join('') + line(2, '05.000'))
    const { records, damaged } = readAll()
    expect(records.map(({ seq }) => seq)).toEqual([1, 2])
    expect(damaged).toBe(garbage.length)
  })

  test('non-UTF-8 bytes are not records', () => {
    put(RUN, 0, Buffer.concat([Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from(line(1, '05.000'))]))
    expect(readAll()).toMatchObject({ records: [{ seq: 1 }], damaged: 1 })
  })

  test('a last line that a crash cut off is not read', () => {
    put(RUN, 0, line(1, '05.000') + line(2, '05.000').slice(0, 40))
    expect(readAll()).toMatchObject({ records: [{ seq: 1 }], damaged: 0 })
  })

  test('links, directories and pipes with the name of a segment are skipped', async () => {
    writeFileSync(join(root, 'secret'), line(1, '05.000'))
    symlinkSync(join(root, 'secret'), join(dir, `${RUN}.1.0.jsonl`))
    mkdirSync(join(dir, `${RUN}.1.1.jsonl`))
    await capture(['/usr/bin/mkfifo', join(dir, `${RUN}.1.2.jsonl`)], { env: {}, timeoutMs: 5000 })
    put(OTHER, 0, line(7, '06.000', OTHER))
    expect(readAll().records.map(({ seq }) => seq)).toEqual([7])
  })
})

describe('followAudit', () => {
  test('yields existing records, then new ones, from new runs and segments too', async () => {
    const stop = new AbortController()
    put(RUN, 0, line(1, '05.000') + line(2, '05.000').slice(0, 40))
    const seen: string[] = []
    const following = (async () => {
      for await (const batch of followAudit(dir, { signal: stop.signal, intervalMs: 5 }))
        for (const { run, seq } of batch) seen.push(`${run === RUN ? 'a' : 'b'}${seq}`)
    })()
    const until = async (count: number): Promise<void> => {
      for (let i = 0; i < 400 && seen.length < count; i++) await Bun.sleep(5)
    }
    await until(1)
    // The half line is completed, another run begins, and the first run continues in a new segment.
    appendFileSync(join(dir, `${RUN}.${DEAD}.0.jsonl`), line(2, '05.000').slice(40))
    await until(2)
    put(OTHER, 0, line(1, '06.000', OTHER))
    await until(3)
    put(RUN, 1, line(3, '07.000'))
    rmSync(join(dir, `${RUN}.${DEAD}.0.jsonl`))
    await until(4)
    stop.abort()
    await following
    expect(seen).toEqual(['a1', 'a2', 'b1', 'a3'])
  })

  test('a line that was removed after a full disk is not yielded', async () => {
    const stop = new AbortController()
    const seen: number[] = []
    put(RUN, 0, line(1, '05.000') + line(2, '05.000').slice(0, 100))
    const following = (async () => {
      for await (const batch of followAudit(dir, { signal: stop.signal, intervalMs: 5 }))
        seen.push(...batch.map(({ seq }) => seq))
    })()
    await Bun.sleep(30)
    put(RUN, 0, line(1, '05.000'))
    await Bun.sleep(30)
    put(RUN, 0, line(1, '05.000') + line(3, '05.000'))
    for (let i = 0; i < 200 && seen.length < 2; i++) await Bun.sleep(5)
    stop.abort()
    await following
    expect(seen).toEqual([1, 3])
  })
})

describe('prune', () => {
  test('the oldest runs go first, by number and by size, and nothing else does', () => {
    for (let i = 0; i < 10; i++) put(`20260102-03040${i}-000000`, 0, 'x'.repeat(1000))
    writeFileSync(join(dir, 'note.txt'), 'mine')
    prune(dir, { maxRuns: 8, maxTotalBytes: 1e6 })
    expect(readdirSync(dir).length).toBe(9)
    prune(dir, { maxRuns: 8, maxTotalBytes: 3500 })
    expect(readdirSync(dir).sort().slice(0, 3).join()).toMatch(/^20260102-030407.*030408.*030409/)
    expect(readdirSync(dir)).toContain('note.txt')
  })

  test('a run with a live process is kept, at any age', () => {
    const live = new Audit(dir, { sandbox: 's', run: '20200101-000000-000000' })
    live.record({ kind: 'limit-hit', limit: 'x' })
    for (let i = 0; i < 3; i++) put(`20260102-03040${i}-000000`, 0, 'x')
    prune(dir, { maxRuns: 1, maxTotalBytes: 1e6 })
    expect(readdirSync(dir)).toEqual([`20200101-000000-000000.${process.pid}.0.jsonl`])
    live.close()
  })

  test('a run that grows makes room for itself', () => {
    for (let i = 0; i < 5; i++) put(`20260102-03040${i}-000000`, 0, 'x'.repeat(500_000))
    const audit = new Audit(dir, { sandbox: 's', bounds: { maxRuns: 100, maxTotalBytes: 2_000_000 } })
    for (let i = 0; i < 5000; i++) audit.record({ kind: 'limit-hit', limit: 'x'.repeat(200) })
    audit.close()
    expect(readdirSync(dir).length).toBeLessThan(4)
    expect([...readAudit(dir, { run: audit.run })].length).toBe(5000)
  })
})

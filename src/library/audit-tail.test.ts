import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { auditDirectory } from '../audit/directory.ts'
import { segmentFile } from '../audit/segment-name.ts'
import { AuditTail } from './audit-tail.ts'

const RUN = '20260102-030405-1a2b3c'
let state = ''
let file = ''
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'pen-tail-'))
  mkdirSync(auditDirectory(state), { recursive: true, mode: 0o700 })
  file = join(auditDirectory(state), segmentFile(RUN, process.pid, 0))
  write(1, 'run-start', 'note')
})
afterEach(() => rmSync(state, { recursive: true, force: true }))

const write = (seq: number, kind: string, verdict: string): void =>
  appendFileSync(
    file,
    `${JSON.stringify({ v: 1, seq, time: '2026-01-02T03:04:05.678Z', run: RUN, kind, verdict })}\n`,
    { mode: 0o600 },
  )

test('denials beyond the bound are counted, and a limit that was reached is never dropped', () => {
  const tail = new AuditTail(state, RUN)
  const mark = tail.mark()
  write(2, 'limit-hit', 'note')
  for (let seq = 3; seq <= 5000; seq++)
    write(seq, seq % 2 === 0 ? 'connection-denied' : 'connection-allowed', seq % 2 === 0 ? 'deny' : 'allow')
  const kept = tail.since(mark)
  const denied = kept.filter(({ record }) => record.verdict === 'deny').length
  expect(kept.some(({ record }) => record.kind === 'limit-hit')).toBe(true)
  expect(denied).toBeLessThan(2499)
  expect(denied + tail.dropped(mark)).toBe(2499)
  expect(tail.dropped(tail.mark())).toBe(0)
})

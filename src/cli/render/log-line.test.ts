import { expect, test } from 'bun:test'
import type { AuditRecord } from '../../audit/read.ts'
import { logLine } from './log-line.ts'

test('a change of many rules says how many are not shown', () => {
  const added = Array.from({ length: 23 }, (_, i) => `h${i}.example.com:443`)
  const record = {
    v: 1,
    seq: 1,
    time: '2026-01-02T03:04:05.678Z',
    run: 'r',
    kind: 'policy-changed',
    verdict: 'note',
  }
  const line = logLine({ ...record, added, removed: [] } as unknown as AuditRecord, (_, text) => text)
  expect(line).toContain('+h19.example.com:443 +3 more')
})

import { expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runningRuns } from './running.ts'
import { segmentFile } from './segment-name.ts'

test('a run that goes on is found behind hundreds that were started later', () => {
  const dir = mkdtempSync(join(tmpdir(), 'pen-running-'))
  chmodSync(dir, 0o700)
  try {
    const add = (run: string, kind: string): void =>
      writeFileSync(
        join(dir, segmentFile(run, process.pid, 0)),
        `${JSON.stringify({ v: 1, seq: 1, time: '2026-01-02T03:04:05.678Z', run, kind, verdict: 'note' })}\n`,
        { mode: 0o600 },
      )
    const first = '20260101-000000-000000'
    add(first, 'run-start')
    for (let i = 0; i < 300; i++) add(`20260102-000000-${i.toString(16).padStart(6, '0')}`, 'run-end')
    expect(runningRuns(dir)).toEqual([first])
  } finally {
    rmSync(dir, { recursive: true })
  }
})

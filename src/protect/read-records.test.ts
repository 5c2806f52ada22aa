import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { neighboursOf } from './read-records.ts'
import { WatchRecord } from './watch-record.ts'

let all = ''
beforeEach(() => {
  all = mkdtempSync(join(tmpdir(), 'pen-records-'))
  mkdirSync(`${all}/mine`)
  mkdirSync(`${all}/new`)
  writeFileSync(`${all}/no-directory`, '')
})
afterEach(() => rmSync(all, { recursive: true, force: true }))

test('the neighbours of a run are the sandboxes that run, also of other projects', async () => {
  const own = await WatchRecord.open(`${all}/mine`, 'own')
  const begins = await WatchRecord.open(`${all}/mine`, 'begins')
  const other = await WatchRecord.open(`${all}/other`, 'other')
  own.write([], [process.ppid])
  other.write([], [process.pid, undefined, 2 ** 30])
  expect(neighboursOf(`${all}/mine`, 'own')).toEqual([process.pid])
  begins.write([], [process.ppid])
  expect(neighboursOf(`${all}/mine`, 'own').sort()).toEqual([process.pid, process.ppid].sort())
  // As a killed run leaves it.
  other.finish(false)
  begins.finish(true)
  expect(neighboursOf(`${all}/mine`, 'own')).toEqual([])
  own.finish(true)
})

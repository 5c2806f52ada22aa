import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WatchRecord } from '../protect/watch-record.ts'
import { surveyRepository } from './git/repository.ts'
import { NOTHING } from './places.ts'
import { neighboursOf } from './run-records.ts'

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
  expect(neighboursOf(`${all}/mine`, 'own')).toContain(process.ppid)
  // As a killed run leaves it.
  other.finish(false)
  begins.finish(true)
  expect(neighboursOf(`${all}/mine`, 'own')).toEqual([])
  own.finish(true)
})

test('a link at a place that a running sandbox watches as absent is not the user’s; another one is', async () => {
  const ws = realpathSync(mkdtempSync(join(tmpdir(), 'pen-links-')))
  try {
    for (const name of ['.vscode', '.claude', '.idea']) symlinkSync('evil', `${ws}/${name}`)
    const protect = ['.vscode', '.claude/hooks', '.idea'].map(name => `${ws}/${name}`)
    const look = (): string[] =>
      surveyRepository(ws, { home: '/home', stateDir: `${all}/mine`, ownRepository: true, protect })
        .watch.filter(({ rule }) => rule.kind === 'link' || rule.kind === 'nothing')
        .map(({ path, rule }) => `${path.slice(ws.length + 1)} ${rule.kind}`)
    const run = await WatchRecord.open(`${all}/mine`, 'run')
    const links = ['.vscode link', '.claude link', '.idea link']
    expect(look()).toEqual(expect.arrayContaining(links))
    const watch = ['.vscode', '.claude/hooks'].map(name => ({
      path: `${ws}/${name}`,
      root: ws,
      rule: NOTHING,
    }))
    run.write(watch, [])
    const beside = ['.vscode nothing', '.claude/hooks nothing', '.idea link']
    expect(look()).toEqual(expect.arrayContaining(beside))
    expect(look()).not.toContain('.vscode link')
    run.finish(true)
    expect(look()).toEqual(expect.arrayContaining(links))
  } finally {
    rmSync(ws, { recursive: true })
  }
})

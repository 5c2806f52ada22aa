import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ProcessIdentity, startTimeOf } from '../base/kernel/processes.ts'
import { tryLock } from '../config/lock.ts'
import { NOTHING, type Watched } from '../survey/places.ts'
import type { QuarantineEvent } from './quarantine.ts'
import { sweepKilledRuns } from './watch-record.ts'

let base = ''
let ws = ''
let state = ''

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-watch-record-')))
  ws = `${base}/ws`
  state = `${base}/state`
  mkdirSync(ws)
  mkdirSync(`${state}/watching`, { recursive: true })
})
afterEach(() => {
  if (existsSync(`${ws}/.claude`)) chmodSync(`${ws}/.claude`, 0o700)
  rmSync(base, { recursive: true, force: true })
})

/** As a killed run leaves it. `lastBeat` is relative to now. */
function killed(paths: readonly string[], lastBeat = 0, processes: readonly ProcessIdentity[] = []): void {
  const watch: Watched[] = paths.map(path => ({ path: `${ws}/${path}`, root: ws, rule: NOTHING }))
  writeFileSync(`${state}/watching/run`, JSON.stringify({ processes, watch }))
  const at = (Date.now() + lastBeat) / 1000
  utimesSync(`${state}/watching/run`, at, at)
}

async function sweep(): Promise<QuarantineEvent[]> {
  const events: QuarantineEvent[] = []
  await sweepKilledRuns(state, event => events.push(event))
  return events
}

describe('what a killed run left at protected places', () => {
  test('is moved, also when the run itself had moved a directory of the same name', async () => {
    killed(['.vscode'])
    mkdirSync(`${state}/quarantine/run/0001-.vscode`, { recursive: true })
    writeFileSync(`${state}/quarantine/run/0001-.vscode/tasks.json`, 'first')
    mkdirSync(`${ws}/.vscode`)
    writeFileSync(`${ws}/.vscode/tasks.json`, 'second')
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
    expect(existsSync(`${ws}/.vscode`)).toBe(false)
    expect(readdirSync(`${state}/quarantine/run`).sort()).toEqual([
      '0001-.vscode',
      '0002-.vscode',
      'manifest.jsonl',
    ])
  })

  test('is moved when a link on the way leads to itself', async () => {
    killed(['.claude/settings.json', '.envrc'])
    symlinkSync('.claude', `${ws}/.claude`)
    writeFileSync(`${ws}/.envrc`, 'x')
    await sweep()
    expect(readdirSync(ws)).toEqual([])
    expect(readdirSync(`${state}/watching`)).toEqual([])
  })

  test('is moved from a locked directory', async () => {
    killed(['.claude/settings.json'])
    mkdirSync(`${ws}/.claude`)
    writeFileSync(`${ws}/.claude/settings.json`, 'x')
    chmodSync(`${ws}/.claude`, 0)
    await sweep()
    chmodSync(`${ws}/.claude`, 0o700)
    expect(readdirSync(`${ws}/.claude`)).toEqual([])
  })

  test('is moved when a link on the way leads to a newer file of the user', async () => {
    symlinkSync('docs', `${ws}/.claude`)
    await Bun.sleep(20)
    killed(['.claude/settings.json'], -7500)
    await Bun.sleep(20)
    mkdirSync(`${ws}/docs`)
    writeFileSync(`${ws}/docs/settings.json`, 'x')
    await sweep()
    expect(readdirSync(ws)).toEqual(['docs'])
  })

  test('is moved when the user changed its mode or added to it later', async () => {
    killed(['.vscode', '.envrc'])
    mkdirSync(`${ws}/.vscode`)
    writeFileSync(`${ws}/.envrc`, 'x')
    await Bun.sleep(50)
    const end = (Date.now() - 7500 - 20) / 1000
    utimesSync(`${state}/watching/run`, end, end)
    chmodSync(`${ws}/.envrc`, 0o640)
    writeFileSync(`${ws}/.vscode/settings.json`, 'of the user')
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved', 'moved'])
    expect(readdirSync(ws)).toEqual([])
  })

  test('is moved after the last process of its sandbox has ended', async () => {
    const planter = `sleep 0.3; echo x > ${ws}/.envrc`
    const { pid } = Bun.spawn(['sh', '-c', planter])
    killed(['.envrc'], 0, [{ pid, startTime: startTimeOf(pid) ?? '' }])
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
    expect(readdirSync(ws)).toEqual([])
  })

  test('is moved although the dying pen still holds its lock; a live one is left alone', async () => {
    writeFileSync(`${ws}/.envrc`, 'x')
    const dead = { pid: 2 ** 22 + 1, startTime: '1' }
    const live = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' }
    killed(['.envrc'], 0, [live])
    const lock = tryLock(`${state}/watching/run`)
    expect(await sweep()).toEqual([])
    killed(['.envrc'], 0, [dead])
    setTimeout(() => closeSync(lock?.fd ?? -1), 50)
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
  })

  test.each(['', '[', '[]', 'null', '{}'])('a record that says %p stops no run', async text => {
    writeFileSync(`${state}/watching/run`, text)
    expect(await sweep()).toEqual([])
    expect(readdirSync(`${state}/watching`)).toEqual([])
  })

  test('does not include what the user made later', async () => {
    killed(['.vscode', '.envrc'], -8000)
    mkdirSync(`${ws}/.vscode`)
    writeFileSync(`${ws}/.envrc`, 'of the user')
    expect(await sweep()).toEqual([])
    expect(readdirSync(ws).sort()).toEqual(['.envrc', '.vscode'])
  })
})

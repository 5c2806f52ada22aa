import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ProcessIdentity, startTimeOf } from '../base/kernel/processes.ts'
import { tryLock } from '../config/lock.ts'
import { NOTHING, type Watched } from '../survey/places.ts'
import type { QuarantineEvent } from './quarantine-event.ts'
import { sweepKilledRuns } from './sweep-killed-runs.ts'
import { asideName, identityOf, WatchRecord } from './watch-record.ts'

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

interface Killed {
  /** When its last process was gone, relative to now. Null: the guard did not see it. */
  readonly ended?: number | null
  readonly processes?: readonly ProcessIdentity[]
  /** How far the clock was set during the run. */
  readonly step?: number
  readonly root?: string
}

const uptime = (): number => Number.parseFloat(readFileSync('/proc/uptime', 'latin1'))

/** As a killed run leaves it. */
function killed(paths: readonly string[], options: Killed = {}): void {
  const { ended = 1000, processes = [], step = 0, root = identityOf(ws) } = options
  const watch: Watched[] = paths.map(path => ({ path: `${ws}/${path}`, root: ws, rule: NOTHING }))
  const booted = Date.now() - uptime() * 1000 + step
  const record = JSON.stringify({ processes, watch, roots: { [ws]: root }, booted })
  const witness = ended === null ? '' : `ended ${uptime() + ended / 1000}\n`
  writeFileSync(`${state}/watching/run`, `${record}\n${witness}`)
  touch(ended ?? 0)
}

function touch(fromNow: number): void {
  const at = (Date.now() + fromNow) / 1000
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
    expect(readdirSync(`${state}/quarantine/run`).sort()).toEqual(['0001-.vscode', '0002-.vscode'])
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
    killed(['.claude/settings.json'], { ended: 0 })
    await Bun.sleep(20)
    mkdirSync(`${ws}/docs`)
    writeFileSync(`${ws}/docs/settings.json`, 'x')
    await sweep()
    expect(readdirSync(ws)).toEqual(['docs'])
  })

  test('is moved when the user changed its mode or added to it later', async () => {
    mkdirSync(`${ws}/.vscode`)
    writeFileSync(`${ws}/.envrc`, 'x')
    await Bun.sleep(20)
    killed(['.vscode', '.envrc'], { ended: 0 })
    await Bun.sleep(20)
    chmodSync(`${ws}/.envrc`, 0o640)
    writeFileSync(`${ws}/.vscode/settings.json`, 'of the user')
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved', 'moved'])
    expect(readdirSync(ws)).toEqual([])
  })

  test('is moved after the last process of its sandbox has ended', async () => {
    const planter = `sleep 0.3; echo x > ${ws}/.envrc`
    const { pid } = Bun.spawn(['sh', '-c', planter])
    killed(['.envrc'], { ended: 400, processes: [{ pid, startTime: startTimeOf(pid) ?? '' }] })
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
    expect(readdirSync(ws)).toEqual([])
  })

  test('is moved after a sandbox that outlived its pen is killed; another process with its pid is not', async () => {
    const planter = `while :; do echo x > ${ws}/.envrc; sleep 0.01; done`
    const dead = { pid: 2 ** 22 + 1, startTime: '1' }
    const init = Bun.spawn(['sh', '-c', planter])
    const other = Bun.spawn(['sleep', '60'])
    try {
      killed(['.envrc'], { processes: [dead, { pid: other.pid, startTime: '1' }] })
      await sweep()
      expect(startTimeOf(other.pid)).toBeDefined()
      for (let i = 0; i < 100 && !existsSync(`${ws}/.envrc`); i++) await Bun.sleep(10)
      const startTime = startTimeOf(init.pid) ?? ''
      killed(['.envrc'], { processes: [dead, { pid: init.pid, startTime }] })
      expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
      expect([startTimeOf(init.pid), readdirSync(ws)]).toEqual([undefined, []])
    } finally {
      init.kill('SIGKILL')
      other.kill('SIGKILL')
    }
  })

  test('is moved although the dying pen still holds its lock; a live one is left alone', async () => {
    writeFileSync(`${ws}/.envrc`, 'x')
    const dead = { pid: 2 ** 22 + 1, startTime: '1' }
    const live = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' }
    killed(['.envrc'], { processes: [live] })
    const lock = tryLock(`${state}/watching/run`)
    expect(await sweep()).toEqual([])
    killed(['.envrc'], { processes: [dead] })
    setTimeout(() => closeSync(lock?.fd ?? -1), 50)
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
  })

  test.each(['', '[', '[]', 'null', '{}'])('a record that says %p stops no run', async text => {
    writeFileSync(`${state}/watching/run`, text)
    expect(await sweep()).toEqual([])
    expect(readdirSync(`${state}/watching`)).toEqual([])
  })

  test('is moved when it is older than the run, and the user changed it later', async () => {
    mkdirSync(`${ws}/docs`)
    renameSync(`${ws}/docs`, `${ws}/.vscode`)
    await Bun.sleep(20)
    killed(['.vscode'], { ended: 0 })
    await Bun.sleep(20)
    writeFileSync(`${ws}/.vscode/settings.json`, 'of the user')
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
  })

  test('does not include what the user made after the last process was gone', async () => {
    killed(['.vscode', '.envrc'], { ended: -50 })
    mkdirSync(`${ws}/.vscode`)
    writeFileSync(`${ws}/.envrc`, 'of the user')
    expect(await sweep()).toEqual([])
    expect(readdirSync(ws).sort()).toEqual(['.envrc', '.vscode'])
  })

  test.each([
    [3000, 1],
    [8000, 0],
  ])(
    'when the guard was killed too: what was made %p ms after the last beat, %p times',
    async (later, times) => {
      killed(['.envrc'], { ended: null })
      touch(-later)
      writeFileSync(`${ws}/.envrc`, 'x')
      expect((await sweep()).filter(({ kind }) => kind === 'moved')).toHaveLength(times)
    },
  )

  test.each([-5000, 5000])('is everything since the start when the clock was set by %p ms', async step => {
    killed(['.envrc'], { ended: -60_000, step })
    writeFileSync(`${ws}/.envrc`, 'x')
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
  })

  test('is everything since the start when a beat saw that the clock was set', async () => {
    killed(['.envrc'], { ended: null })
    utimesSync(`${state}/watching/run`, 0, 0)
    writeFileSync(`${ws}/.envrc`, 'x')
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
  })

  test('is not looked for in a new directory at the same path', async () => {
    killed(['.envrc'], { root: '1 1' })
    writeFileSync(`${ws}/.envrc`, 'of a new clone')
    expect(await sweep()).toEqual([])
    expect([readdirSync(ws), readdirSync(`${state}/watching`)]).toEqual([['.envrc'], []])
  })

  test('includes what was put aside beside a place; other names stay', async () => {
    killed(['.envrc', '.claude/settings.json'])
    mkdirSync(`${ws}/.claude`)
    for (const dir of [ws, `${ws}/.claude`]) writeFileSync(`${dir}/${asideName()}`, 'x')
    writeFileSync(`${ws}/.pen-quarantine-b`, 'of the user')
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved', 'moved'])
    expect([readdirSync(ws).sort(), readdirSync(`${ws}/.claude`)]).toEqual([
      ['.claude', '.pen-quarantine-b'],
      [],
    ])
  })
})

describe('the record of a run', () => {
  test('stops the start while there are more put aside than pen looks at', async () => {
    killed(['.envrc'])
    for (let i = 0; i <= 1000; i++) writeFileSync(`${ws}/${asideName()}`, '')
    await expect(sweepKilledRuns(state, () => undefined)).rejects.toThrow('1001 files')
    for (const name of readdirSync(ws).slice(1)) rmSync(`${ws}/${name}`)
    await sweepKilledRuns(state, () => undefined)
    expect(readdirSync(ws)).toEqual([])
  })

  test('is gone after a clean end, with its empty quarantine', async () => {
    const record = await WatchRecord.open(state, 'run')
    record.write([], [])
    expect(existsSync(record.quarantine)).toBe(true)
    record.finish(true)
    expect([readdirSync(`${state}/watching`), readdirSync(`${state}/quarantine`)]).toEqual([[], []])
  })

  test('stays when something could not be moved, and the next start moves it', async () => {
    const record = await WatchRecord.open(state, 'run')
    record.write([{ path: `${ws}/.envrc`, root: ws, rule: NOTHING }], [])
    writeFileSync(`${ws}/.envrc`, 'x')
    record.finish(false)
    await Bun.sleep(20)
    expect(readdirSync(`${state}/watching`)).toEqual(['run'])
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved'])
    expect(readdirSync(`${state}/watching`)).toEqual([])
  })

  test('stays after a failure when the command may have begun; before that it goes', async () => {
    const before = await WatchRecord.open(state, 'before')
    before.abandon()
    const after = await WatchRecord.open(state, 'after')
    after.write([], [])
    after.abandon()
    expect(readdirSync(`${state}/watching`)).toEqual(['after'])
  })

  test('has the places that lost their mount: the next start looks at them, also after half a line', async () => {
    const record = await WatchRecord.open(state, 'run')
    record.write([{ path: `${ws}/.npmrc`, root: ws, rule: NOTHING }], [])
    expect(record.lose({ path: `${ws}/.envrc`, root: ws, rule: NOTHING })).toBe(true)
    for (const name of ['.envrc', '.npmrc', 'notes']) writeFileSync(`${ws}/${name}`, 'x')
    writeSync(record.witness, '{"place":')
    record.finish(false)
    await Bun.sleep(20)
    expect((await sweep()).map(({ kind }) => kind)).toEqual(['moved', 'moved'])
    expect([readdirSync(ws), readdirSync(`${state}/watching`)]).toEqual([['notes'], []])
  })
})

import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HoldRequest, HoldResult, LiveMounts, Running, Seen } from '../backend/backend.ts'
import type { Loaded } from '../config/load.ts'
import { parseGlob } from '../policy/files/glob.ts'
import { type Held, NOTHING } from '../survey/places.ts'
import type { Surveyed } from '../survey/survey.ts'
import { PlaceWatch, type WatchOptions } from './watch-places.ts'
import { WatchRecord } from './watch-record.ts'

let base = ''
let ws = ''
let lines: string[] = []
let kills = 0
let isFrozen: boolean = false
let freezes = 0
let watch: PlaceWatch | undefined

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-places-')))
  ws = `${base}/ws`
  mkdirSync(ws)
  lines = []
  kills = 0
  isFrozen = false
  freezes = 0
})
afterEach(async () => {
  await watch?.finish()
  watch = undefined
  rmSync(base, { recursive: true, force: true })
})

/** A sandbox that swaps each file before pen can mount on it, unless it is frozen. */
class Swapping implements LiveMounts {
  held = 0
  ready = (): boolean => true
  close = (): void => undefined

  look(path: string): Seen | undefined {
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stats && this.held === 0
      ? { dev: stats.dev, ino: stats.ino, kind: 'file', mountPoint: false }
      : undefined
  }

  async hold(requests: readonly HoldRequest[]): Promise<readonly HoldResult[]> {
    if (isFrozen) this.held++
    return requests.map(() => (isFrozen ? 'held' : 'changed'))
  }
}

type WhilePaused = WatchOptions['whilePaused']

const whileFrozen: WhilePaused = async act => {
  isFrozen = true
  freezes++
  await act().finally(() => {
    isFrozen = false
  })
}

/** `.mcp.json`, where a test made it before the start. */
function held(): Held[] {
  const path = `${ws}/.mcp.json`
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  if (stats === undefined) return []
  const { dev, ino, birthtimeNs: born } = stats
  return [{ path, root: ws, rule: NOTHING, type: 'file', dev, ino, born }]
}

async function start(whilePaused: WhilePaused, state = base): Promise<void> {
  const glob = parseGlob('.env*')
  if (!glob.ok) throw new Error(glob.why)
  const deny = [{ rule: { kind: 'glob', glob: glob.value } }]
  const policy = { workspace: ws, files: { deny, read: [{ rule: { path: ws } }] } }
  const places = [
    { path: `${ws}/.npmrc`, root: ws, rule: { kind: 'nothing' } },
    { path: `${ws}/.git/hooks`, root: ws, rule: { kind: 'git-hooks' } },
    { path: `${ws}/.git/config`, root: ws, rule: { kind: 'git-config', known: [] } },
  ]
  watch = new PlaceWatch({
    loaded: { policy, project: { stateDir: state } } as unknown as Loaded,
    facts: {
      repository: { watch: places, protect: held(), emptyModules: [] },
      denied: [],
    } as unknown as Surveyed,
    running: {
      mounts: new Swapping(),
      initPid: () => process.pid,
    } as unknown as Running,
    onEnd: () => kills++,
    watchRecord: await WatchRecord.open(state, 'run'),
    whilePaused,
    tell: line => lines.push(line),
    record: () => undefined,
  })
}

async function until(isSo: () => boolean, ms: number): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end; await Bun.sleep(5))
    if (isSo()) return true
  return isSo()
}

test('a sandbox that outruns the watch is frozen until every place is held, and then goes on', async () => {
  await start(whileFrozen)
  writeFileSync(`${ws}/.env`, 'x')
  expect(await until(() => freezes > 0, 4000)).toBe(true)
  expect([await until(() => !isFrozen, 500), kills]).toEqual([true, 0])
})

test('a sandbox that cannot be held in 5 seconds is ended, and that is reported', async () => {
  await start(act => act())
  writeFileSync(`${ws}/.env`, 'x')
  expect(await until(() => kills > 0, 15_000)).toBe(true)
  expect(lines.join()).toContain('ended the sandbox')
}, 20_000)

test('a planted file is moved within milliseconds, by the same watch', async () => {
  await start(whileFrozen)
  await Bun.sleep(60)
  writeFileSync(`${ws}/.npmrc`, 'x')
  expect(await until(() => !existsSync(`${ws}/.npmrc`), 150)).toBe(true)
})

test('a sandbox that plants again and again is ended; one that plants a few times goes on', async () => {
  await start(whileFrozen)
  await Bun.sleep(60)
  const plant = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      writeFileSync(`${ws}/.npmrc`, 'x')
      await until(() => !existsSync(`${ws}/.npmrc`), 1000)
    }
  }
  await plant(15)
  expect(kills).toBe(0)
  await plant(10)
  expect(kills).toBeGreaterThan(0)
  expect(lines.join()).toContain('again and again')
})

test('a hook in a repository that was made inside is moved within milliseconds', async () => {
  await start(whileFrozen)
  mkdirSync(`${ws}/.git/hooks`, { recursive: true })
  await Bun.sleep(300)
  writeFileSync(`${ws}/.git/hooks/pre-commit`, 'x')
  expect(await until(() => !existsSync(`${ws}/.git/hooks`), 150)).toBe(true)
  expect(existsSync(`${ws}/.git`)).toBe(true)
})

test('settings that are written in place again and again end the run; those that git writes do not', async () => {
  await start(whileFrozen)
  mkdirSync(`${ws}/.git`)
  await Bun.sleep(300)
  const [config, lock] = [`${ws}/.git/config`, `${ws}/.git/config.lock`]
  for (let i = 0; i < 12; i++) {
    writeFileSync(lock, '[core]\n\tbare = false\n')
    renameSync(lock, config)
    await Bun.sleep(5)
  }
  await Bun.sleep(100)
  expect([kills, lines]).toEqual([0, []])
  for (let i = 0; i < 6; i++) {
    writeFileSync(config, '[core]\n\tbare = true\n')
    await Bun.sleep(5)
  }
  expect(await until(() => kills > 0, 500)).toBe(true)
  expect(lines.join()).toContain('again and again')
})

test('a project that is moved ends the run, with one line; a change beside it does not', async () => {
  await start(whileFrozen)
  await Bun.sleep(60)
  writeFileSync(`${base}/beside`, 'x')
  await Bun.sleep(300)
  expect(kills).toBe(0)
  renameSync(ws, `${base}/moved`)
  expect(await until(() => kills > 0, 500)).toBe(true)
  expect(lines.join()).toContain('was moved, replaced or removed on the host')
  await Bun.sleep(300)
  expect([kills, lines.length]).toEqual([1, 1])
})

test('a look that never ends ends the run', async () => {
  await start(() => new Promise(resolve => setTimeout(resolve, 7000)))
  writeFileSync(`${ws}/.env`, 'x')
  expect(await until(() => kills > 0, 9000)).toBe(true)
}, 20_000)

test('a place that cannot be kept clean ends the run, and its record stays', async () => {
  await start(whileFrozen)
  rmSync(`${base}/quarantine`, { recursive: true })
  writeFileSync(`${base}/quarantine`, 'in the way')
  writeFileSync(`${ws}/.npmrc`, 'x')
  expect(await until(() => kills > 0, 1000)).toBe(true)
  expect(lines.join()).toContain('could not be moved away')
  rmSync(`${base}/quarantine`)
  await watch?.finish()
  expect([existsSync(`${ws}/.npmrc`), existsSync(`${base}/watching/run`)]).toEqual([false, true])
})

test('what may be the user’s and cannot be moved ends the run: the sandbox could write it; its own does not', async () => {
  if (lstatSync('/dev/shm', { throwIfNoEntry: false })?.dev === lstatSync(base).dev) return
  const state = mkdtempSync('/dev/shm/pen-places-')
  try {
    writeFileSync(`${ws}/.mcp.json`, 'old')
    await start(whileFrozen, state)
    await Bun.sleep(60)
    writeFileSync(`${ws}/.npmrc`, 'x')
    expect(await until(() => !existsSync(`${ws}/.npmrc`), 500)).toBe(true)
    expect(kills).toBe(0)
    rmSync(`${ws}/.mcp.json`)
    writeFileSync(`${ws}/.mcp.json`, 'new')
    expect(await until(() => kills > 0, 500)).toBe(true)
    expect(lines.join()).toContain('which may be yours, or the sandbox wrote to it')
    await watch?.finish()
  } finally {
    rmSync(state, { recursive: true, force: true })
  }
})

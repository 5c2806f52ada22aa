import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { lstatSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Stopwatch } from '../../test/stopwatch.ts'
import type { HoldRequest, HoldResult, LiveMounts, Seen } from '../backend/backend.ts'
import { parseGlob } from '../policy/files/glob.ts'
import type { Policy } from '../policy/policy.ts'
import { matchingNames } from '../survey/expand.ts'
import { DeniedPlaces } from './denied-places.ts'
import { DirectoryWatch } from './directory-watch.ts'
import { type HoldEvent, LOOK_MS, Remount } from './remount.ts'

let ws = ''
let events: HoldEvent[] = []
let floods = 0
let running: Remount | undefined
let watch: DirectoryWatch | undefined
let timer: ReturnType<typeof setInterval> | undefined

beforeEach(() => {
  ws = realpathSync(mkdtempSync(join(tmpdir(), 'pen-hold-')))
  events = []
  floods = 0
})
afterEach(async () => {
  await stop()
  rmSync(ws, { recursive: true, force: true })
})

/** Mounts by inode, as the kernel does: a replaced file has none. */
class Mounts implements LiveMounts {
  readonly batches: HoldRequest[][] = []
  readonly mounted = new Set<bigint>()
  isReady = true
  answer: HoldResult = 'held'
  closed = false

  ready(): boolean {
    return this.isReady
  }

  look(path: string): Seen | undefined {
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined) return undefined
    const mountPoint = this.mounted.has(stats.ino)
    const covered = mountPoint && path.includes('.env')
    return { dev: covered ? 0n : stats.dev, ino: stats.ino, kind: 'file', mountPoint }
  }

  async hold(requests: readonly HoldRequest[]): Promise<readonly HoldResult[]> {
    this.batches.push([...requests])
    await Bun.sleep(2)
    if (this.answer === 'held') for (const { ino } of requests) this.mounted.add(ino as bigint)
    return requests.map(() => this.answer)
  }

  close(): void {
    this.closed = true
  }
}

function start(mounts: Mounts, held: readonly string[] = [], list = matchingNames): void {
  const glob = parseGlob('.env*')
  if (!glob.ok) throw new Error(glob.why)
  const deny = [{ rule: { kind: 'glob', glob: glob.value } }]
  const denied = new DeniedPlaces({ workspace: ws, files: { deny } } as unknown as Policy, [ws], list)
  running = new Remount({
    mounts,
    denied,
    covered: 0,
    held: () => held,
    onEvent: event => events.push(event),
    onFlood: () => floods++,
    onDirectories: () => watch?.set(running?.directories() ?? []),
  })
  // As `PlaceWatch` drives it.
  const driven = running
  watch = new DirectoryWatch({
    appeared: (dir, name) => driven.appeared(dir, name),
    doubt: () => driven.lookAtAll(),
    lost: () => driven.lookAtAll(),
  })
  watch.set(running.directories())
  timer = setInterval(() => driven.look(), LOOK_MS)
}

async function stop(): Promise<void> {
  clearInterval(timer)
  await running?.stop()
  await watch?.close()
}

async function until(isSo: () => boolean, ms = 2000): Promise<number> {
  const watch = new Stopwatch()
  while (!isSo() && watch.ms < ms) await Bun.sleep(1)
  return watch.ms
}

const replace = (path: string): void => {
  writeFileSync(`${ws}/new`, 'new')
  renameSync(`${ws}/new`, path)
}

describe('a denied file', () => {
  test('that appears is covered at once; an ordinary one is not', async () => {
    const mounts = new Mounts()
    start(mounts)
    writeFileSync(`${ws}/.env.local`, 'secret')
    writeFileSync(`${ws}/readme`, 'text')
    expect(await until(() => events.length > 0)).toBeLessThan(200)
    expect(events).toEqual([{ how: 'cover', path: `${ws}/.env.local`, result: 'held' }])
    expect(mounts.batches.flat().map(({ path }) => path)).toEqual([`${ws}/.env.local`])
  })

  test('that is being covered when the sandbox ends is reported; one that could not be covered is not', async () => {
    for (const [answer, told] of [
      ['held', 1],
      [{ failed: 'the sandbox is gone' }, 0],
    ] as const) {
      const mounts = new Mounts()
      mounts.answer = answer
      start(mounts)
      writeFileSync(`${ws}/.env.last`, 'secret')
      await until(() => mounts.batches.length > 0)
      await stop()
      expect([events.length, mounts.closed]).toEqual([told, true])
      rmSync(`${ws}/.env.last`)
      events = []
    }
  })

  test('that was there before the watch is covered by the next look', async () => {
    writeFileSync(`${ws}/.env`, 'secret')
    start(new Mounts())
    expect(await until(() => events.length > 0)).toBeLessThan(1000)
  })

  test('that is replaced is covered again, each time', async () => {
    const mounts = new Mounts()
    start(mounts)
    for (let i = 1; i <= 5; i++) {
      replace(`${ws}/.env`)
      await until(() => mounts.look(`${ws}/.env`)?.dev === 0n)
    }
    expect(mounts.look(`${ws}/.env`)?.dev).toBe(0n)
  })

  test('P3 is covered at once, and a protected one held, while a survey of many names waits for its turn', async () => {
    const mounts = new Mounts()
    let surveys = 0
    const slow: typeof matchingNames = (...asked) => {
      surveys++
      Bun.sleepSync(100)
      return matchingNames(...asked)
    }
    start(mounts, [`${ws}/.npmrc`], slow)
    // A new directory needs a survey.
    for (const name of ['.env.d', '.env.e']) {
      mkdirSync(`${ws}/${name}`)
      await until(() => surveys > 0)
      await Bun.sleep(20)
    }
    for (const name of ['.env', '.npmrc']) {
      replace(`${ws}/${name}`)
      expect(await until(() => events.some(({ path }) => path === `${ws}/${name}`))).toBeLessThan(300)
    }
    expect(await until(() => running?.isBehind === true)).toBeLessThan(1000)
    const before = surveys
    await running?.catchUp(performance.now() + 1000)
    expect([running?.isBehind, surveys > before]).toEqual([false, true])
  })

  test('waits for a sandbox whose tree is not complete yet', async () => {
    const mounts = new Mounts()
    mounts.isReady = false
    start(mounts)
    writeFileSync(`${ws}/.env`, 'secret')
    await Bun.sleep(50)
    expect(mounts.batches).toEqual([])
    mounts.isReady = true
    expect(await until(() => events.length > 0)).toBeLessThan(200)
  })

  test('P3 that cannot be covered is tried a few times and reported, and then ends the sandbox', async () => {
    const mounts = new Mounts()
    mounts.answer = { failed: 'no' }
    start(mounts)
    writeFileSync(`${ws}/.env`, 'secret')
    await until(() => events.length >= 5)
    await Bun.sleep(400)
    expect(events.map(({ result }) => result)).toEqual(new Array(5).fill({ failed: 'no' }))
    expect(floods).toBe(1)
  })

  test('that is covered after some failures ends nothing', async () => {
    const mounts = new Mounts()
    mounts.answer = { failed: 'no' }
    start(mounts)
    writeFileSync(`${ws}/.env`, 'secret')
    await until(() => events.length >= 3)
    mounts.answer = 'held'
    await until(() => events.at(-1)?.result === 'held')
    expect([mounts.look(`${ws}/.env`)?.dev, floods]).toEqual([0n, 0])
  })

  test('that comes and goes makes less and less work', async () => {
    const mounts = new Mounts()
    mounts.answer = 'changed'
    start(mounts)
    const end = performance.now() + 1000
    for (let i = 0; performance.now() < end; i++) {
      writeFileSync(`${ws}/.env.${i % 7}`, 'x')
      await Bun.sleep(1)
    }
    expect(mounts.batches.length).toBeGreaterThan(2)
    expect(mounts.batches.length).toBeLessThan(20)
  })

  test('is one of too many: that is reported', async () => {
    start(new Mounts())
    for (let i = 0; i < 900; i++) writeFileSync(`${ws}/.env.${i}`, '')
    await until(() => events.length >= 900)
    expect(floods).toBe(0)
    for (let i = 900; i < 1100; i++) writeFileSync(`${ws}/.env.${i}`, '')
    await until(() => floods > 0)
    expect(floods).toBeGreaterThan(0)
  })
})

test('P3 names that cannot be covered end the sandbox when they are too many, and not before', async () => {
  let named = 0
  const nameless = (): string[] => Array.from({ length: 20 }, () => `.env\ufffd${named++}`)
  start(new Mounts(), [], nameless)
  for (let i = 0; i < 200 && floods === 0; i++) {
    running?.lookAtAll()
    if (events.length <= 1000) expect(floods).toBe(0)
    await Bun.sleep(10)
  }
  expect([floods > 0, events.length < 1100]).toEqual([true, true])
})

test('a protected file that the host replaced is protected again, and one that it left alone is not touched', async () => {
  mkdirSync(`${ws}/.git`)
  const [config, other] = [`${ws}/.git/config`, `${ws}/.git/other`]
  for (const path of [config, other]) writeFileSync(path, 'old')
  const mounts = new Mounts()
  for (const path of [config, other]) mounts.mounted.add(lstatSync(path, { bigint: true }).ino)
  start(mounts, [config, other])
  replace(config)
  expect(await until(() => events.length > 0)).toBeLessThan(200)
  expect(events).toEqual([{ how: 'protect', path: config, result: 'held' }])
})

test('after the end nothing is mounted', async () => {
  const mounts = new Mounts()
  start(mounts)
  await running?.stop()
  expect(mounts.closed).toBe(true)
  writeFileSync(`${ws}/.env`, 'secret')
  await Bun.sleep(300)
  expect(events).toEqual([])
})

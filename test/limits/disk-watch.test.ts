import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DiskWatch } from '../../src/limits/disk-watch.ts'
import { measureGrowth } from '../../src/limits/growth.ts'
import type { LimitHit } from '../../src/limits/limit-hit.ts'
import { startRaw } from './raw-sandbox.ts'

const MIB = 2 ** 20
const BOUND = 64 * MIB

/** On a disk: a tmpfs keeps neither birth times nor write counts. */
let base = ''
let ws = ''
beforeEach(() => {
  base = realpathSync(mkdtempSync('/var/tmp/pen-disk-'))
  ws = `${base}/ws`
  mkdirSync(ws)
})
afterEach(() => {
  if (existsSync(`${ws}/d`)) chmodSync(`${ws}/d`, 0o700)
  rmSync(base, { recursive: true, force: true })
})

interface Outcome {
  readonly hit: LimitHit | undefined
  readonly output: string
  readonly left: number
}

/** Checks a few times a second, like the handle of the limits, and ends the sandbox at a hit. */
async function watch(script: string, limit: 'disk' | 'output' = 'disk', bound = BOUND): Promise<Outcome> {
  let hit: LimitHit | undefined
  const trees = [limit === 'disk' ? ws : `${ws}/output`]
  const disk = new DiskWatch([{ limit, bound, trees }], h => {
    hit = h
    sandbox.kill()
  })
  const sandbox = await startRaw(['bash', '-c', `cd ${ws}; ${script}`], { writable: [ws] })
  const timer = setInterval(() => void disk.look(sandbox.init), 200)
  const late = setTimeout(() => sandbox.kill(), 12_000)
  const { output } = await sandbox.ended
  clearInterval(timer)
  clearTimeout(late)
  disk.stop()
  return { hit, output, left: await made() }
}

const made = async (): Promise<number> =>
  (await measureGrowth({ trees: [ws], since: 0, enough: Number.POSITIVE_INFINITY, everything: true })).made

/** Slowly enough that the limit is passed between two checks, not before the first. */
const write = (to: string): string =>
  `for i in 1 2 3 4 5 6 7 8; do head -c 32m /dev/zero >>${to}; sleep 0.15; done`

describe('more than the limit is stopped', () => {
  const ways = {
    'written into one file': write('big'),
    'written into many files': 'for i in {1..8}; do head -c 32m /dev/zero >$i; sleep 0.15; done',
    'deep in the tree': `mkdir -p ${'d/'.repeat(50)}; cd ${'d/'.repeat(50)}; ${write('big')}`,
    'reserved, not written': 'fallocate -l 256m big; sleep 3',
    'in an unnamed file': `exec 3>big; rm big; ${write('/dev/fd/3')}`,
    'in a directory whose permissions were removed':
      'mkdir d; head -c 96m /dev/zero >d/big; chmod 000 d; sleep 2',
    'by a process that left its parent': `(setsid bash -c '${write('big')}' &) ; sleep 3`,
    'under a non-UTF-8 name': `${write(`$'\\xff\\xfe'`)}`,
  }
  for (const [way, script] of Object.entries(ways))
    test(way, async () => {
      const { hit, output } = await watch(`${script}; sleep 8; echo survived`)
      expect(hit).toMatchObject({ limit: 'disk', what: 'killed', bound: BOUND })
      expect(output).toBe('')
    })

  test('in a file that is only mapped, at twice the limit', async () => {
    const mapped = `const fs = require('fs'); fs.writeFileSync('big', Buffer.alloc(160 << 20));
      globalThis.kept = Bun.mmap('big'); fs.unlinkSync('big'); setTimeout(() => console.log('survived'), 8000)`
    writeFileSync(`${base}/map.js`, mapped)
    const { hit, output } = await watch(`exec ${process.execPath} ${base}/map.js`)
    expect(hit).toMatchObject({ limit: 'disk', what: 'killed' })
    expect(output).toBe('')
  })

  test('in empty files', async () => {
    const { hit } = await watch(
      'mkdir a; cd a; n=0; while [ $n -lt 40 ]; do eval "touch $n-{1..100}"; n=$((n+1)); done; sleep 8; echo survived',
      'disk',
      2 * MIB,
    )
    expect(hit).toMatchObject({ limit: 'disk', what: 'killed' })
  })

  test('appended to a file that was there before', async () => {
    writeFileSync(`${ws}/old`, 'old')
    await Bun.sleep(50)
    const { hit } = await watch(write('old'))
    expect(hit).toMatchObject({ limit: 'disk', what: 'killed' })
  })

  test('in the output directory, which need not exist at the start', async () => {
    const { hit } = await watch(`mkdir output; ${write('output/big')}`, 'output')
    expect(hit).toMatchObject({ limit: 'output', what: 'killed', bound: BOUND })
  })
})

describe('less is left alone', () => {
  test('below the limit', async () => {
    const { hit, output } = await watch('head -c 40m /dev/zero >a; sleep 0.6; echo survived')
    expect({ hit, output }).toEqual({ hit: undefined, output: 'survived\n' })
  })

  test('written and deleted again', async () => {
    const { hit, output } = await watch(
      'for i in 1 2 3 4 5 6; do head -c 30m /dev/zero >a; sleep 0.25; rm a; done; echo survived',
    )
    expect({ hit, output }).toEqual({ hit: undefined, output: 'survived\n' })
  })

  test('holes in a file', async () => {
    const { hit, output } = await watch('truncate -s 10G a; sleep 0.6; echo survived')
    expect({ hit, output }).toEqual({ hit: undefined, output: 'survived\n' })
  })

  test('a large file that was there before and changed', async () => {
    // Large, because concurrent writes of other programs count for such a file. They do not write that much.
    Bun.spawnSync(['fallocate', '-l', '600m', `${ws}/old`])
    await Bun.sleep(50)
    const overwrite = 'dd if=/dev/zero of=old bs=1M count=180 conv=notrunc 2>/dev/null; sleep 0.1'
    const { hit, output } = await watch(
      `for i in 1 2 3; do ${overwrite}; done; sleep 0.3; echo survived`,
      'disk',
      512 * MIB,
    )
    expect({ hit, output }).toEqual({ hit: undefined, output: 'survived\n' })
  })

  test('what another program writes elsewhere on the disk', async () => {
    const others = Bun.spawn(['sh', '-c', `head -c 128m /dev/zero >${base}/theirs`])
    const { hit, output } = await watch('head -c 8m /dev/zero >a; sleep 1; echo survived')
    await others.exited
    expect({ hit, output }).toEqual({ hit: undefined, output: 'survived\n' })
  })

  test('the workspace, when only the output directory is limited', async () => {
    const { hit, output } = await watch(
      'mkdir output; head -c 96m /dev/zero >a; sleep 0.6; echo survived',
      'output',
    )
    expect({ hit, output }).toEqual({ hit: undefined, output: 'survived\n' })
  })
})

describe('the walk', () => {
  const walk = () =>
    measureGrowth({ trees: [ws], since: 0, enough: Number.POSITIVE_INFINITY, everything: false })

  test('follows no link', async () => {
    const before = await walk()
    mkdirSync(`${base}/elsewhere`)
    writeFileSync(`${base}/elsewhere/big`, Buffer.alloc(8 * MIB))
    symlinkSync(`${base}/elsewhere`, `${ws}/link`)
    expect((await walk()).made - before.made).toBeLessThan(MIB)
  })

  test('counts a file with a hard link once', async () => {
    writeFileSync(`${ws}/a`, Buffer.alloc(8 * MIB))
    const once = (await walk()).made
    Bun.spawnSync(['ln', `${ws}/a`, `${ws}/b`])
    expect((await walk()).made).toBe(once)
  })

  test('stops when it knows enough', async () => {
    for (let i = 0; i < 20; i++) mkdirSync(join(ws, String(i)))
    for (const dir of readdirSync(ws)) writeFileSync(`${ws}/${dir}/f`, Buffer.alloc(MIB))
    const growth = await measureGrowth({ trees: [ws], since: 0, enough: 3 * MIB, everything: false })
    expect(growth.made).toBeLessThan(6 * MIB)
  })

  test('skips what has not changed, and finds what has', async () => {
    mkdirSync(`${ws}/old`)
    mkdirSync(`${ws}/deep/er`, { recursive: true })
    writeFileSync(`${ws}/old/f`, Buffer.alloc(MIB))
    await Bun.sleep(50)
    const since = Date.now() - 10
    writeFileSync(`${ws}/deep/er/f`, Buffer.alloc(2 * MIB))
    const growth = await measureGrowth({
      trees: [ws],
      since,
      enough: Number.POSITIVE_INFINITY,
      everything: false,
    })
    expect(growth.made).toBe(2 * MIB)
  })

  test('finds nothing in a missing tree', async () => {
    const growth = await measureGrowth({ trees: [`${ws}/no`], since: 0, enough: 1, everything: true })
    expect(growth).toMatchObject({ made: 0, changed: 0, blind: false })
  })
})

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bytes, Millis } from '../../src/base/quantity.ts'
import { type BoundOptions, Bounds } from '../../src/limits/bounds.ts'
import { describeHit, type LimitHit, raiseLimit } from '../../src/limits/limit-hit.ts'
import { LimitHandle } from '../../src/limits/limits.ts'
import { setProcessLimit } from '../../src/limits/prlimit.ts'
import { findLimitSupport, type LimitSupport, probeLimits } from '../../src/limits/probe.ts'
import type { Limits } from '../../src/policy/policy.ts'
import { onlyWhen } from '../skip.ts'
import { startRaw } from './raw-sandbox.ts'

const MIB = 2 ** 20
const ROOMY: Limits = {
  cpus: 64,
  memory: (2048 * MIB) as Bytes,
  pids: 512,
  wall: 60_000 as Millis,
  disk: (1024 * MIB) as Bytes,
  output: (1024 * MIB) as Bytes,
  files: 1024,
}
const WATCHDOG: LimitSupport = {
  mechanism: { how: 'watchdog' },
  held: new Set(),
}

let base = ''
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-limits-')))
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

interface Outcome {
  readonly code: number | null
  readonly output: string
  readonly ms: number
  readonly hits: readonly LimitHit[]
  readonly heard: readonly LimitHit[]
}

function open(limits: Partial<Limits>, options: Partial<BoundOptions> = {}): LimitHandle {
  const bounds = new Bounds({
    limits: { ...ROOMY, ...limits },
    runId: 'test',
    support: undefined,
    ...options,
  })
  return new LimitHandle(bounds, { growing: [], output: undefined, placesFile: `${base}/places` })
}

async function run(
  handle: LimitHandle,
  argv: readonly string[],
  writable: readonly string[] = [],
): Promise<Outcome> {
  const heard: LimitHit[] = []
  handle.onHit(hit => heard.push(hit))
  const sandbox = await startRaw(argv, {
    joinFds: handle.bounds.joinFds,
    writable,
    nproc: handle.bounds.nproc,
    attach: init => handle.attach(init),
  })
  const late = setTimeout(() => sandbox.kill(), 12_000)
  const ended = await sandbox.ended
  clearTimeout(late)
  const hits = await handle.finish()
  await handle.bounds.remove()
  return { ...ended, hits, heard }
}

const sh = (script: string): string[] => ['/bin/sh', '-c', script]

/** Holds this many MiB in its own process. */
const hog = (mib: number): string => `head -c ${mib}m /dev/zero | tail -c ${mib}m >/dev/null`

/** Starts this many sleepers and prints how many started. */
const forks = (count: number): string =>
  `n=0; while [ $n -lt ${count} ]; do sleep 2 & n=$((n+1)); done 2>/dev/null; echo $n; `

const SPIN =
  'e=$(($(date +%s%N)+1500000000)); while [ $(date +%s%N) -lt $e ]; do n=0; while [ $n -lt 3000 ]; do n=$((n+1)); done; done'

/** CPU seconds of everything that the shell waited for. */
const cpuSeconds = (output: string): number =>
  [...output.matchAll(/(\d+)m([\d.]+)s/g)].reduce((sum, [, m, s]) => sum + Number(m) * 60 + Number(s), 0)

const isRoot = process.getuid?.() === 0
const byCgroup = onlyWhen(findLimitSupport().mechanism.how.startsWith('cgroup'))

describe('by cgroup', () => {
  byCgroup('the probe says that the kernel limits memory, processes and CPU', () => {
    expect(probeLimits()).toMatchObject({
      memory: 'kernel',
      pids: 'kernel',
      cpus: 'kernel',
      disk: 'watchdog',
    })
  })

  byCgroup('a memory hog ends the whole sandbox, as one event', async () => {
    const { hits, heard, output, ms } = await run(
      open({ memory: (64 * MIB) as Bytes }),
      sh(`${hog(256)}; sleep 10; echo survived`),
    )
    expect(hits).toMatchObject([{ limit: 'memory', what: 'killed', bound: 64 * MIB }])
    expect(heard).toHaveLength(1)
    expect(output).not.toContain('survived')
    expect(ms).toBeLessThan(2500)
  })

  byCgroup('a program below the limit is left alone', async () => {
    const { hits, output, code } = await run(
      open({ memory: (256 * MIB) as Bytes }),
      sh(`${hog(64)}; echo survived`),
    )
    expect({ hits, output, code }).toEqual({ hits: [], output: 'survived\n', code: 0 })
  })

  byCgroup('a fork bomb stops at the limit, and the sandbox goes on', async () => {
    const { hits, output } = await run(open({ pids: 20 }), sh(`(${forks(200)}) | tail -1; exec sleep 0.3`))
    expect(hits).toMatchObject([{ limit: 'pids', what: 'refused', bound: 20 }])
    expect(Number(output) || 0).toBeLessThan(21)
  })

  byCgroup('as many processes as the limit says can be started', async () => {
    const { hits, output } = await run(open({ pids: 20 }), sh(`${forks(18)}`))
    expect({ hits, output }).toEqual({ hits: [], output: '18\n' })
  })

  byCgroup('a tenth of a CPU is a tenth of a CPU', async () => {
    const { hits, output } = await run(open({ cpus: 0.1 }), [
      'bash',
      '-c',
      `(${SPIN}) & (${SPIN}) & wait; times`,
    ])
    expect(hits).toMatchObject([{ limit: 'cpus', what: 'throttled', bound: 0.1 }])
    expect(cpuSeconds(output)).toBeGreaterThan(0.05)
    expect(cpuSeconds(output)).toBeLessThan(0.25)
  })

  byCgroup('three sandboxes at once have their own limits, and leave nothing', async () => {
    const handles = [64, 256, 256].map((mib, i) =>
      open({ memory: (mib * MIB) as Bytes }, { runId: `three-${i}` }),
    )
    const ends = await Promise.all(
      handles.map(handle => run(handle, sh(`${hog(128)}; sleep 0.4; echo survived`))),
    )
    expect(ends.map(({ output }) => output)).toEqual(['', 'survived\n', 'survived\n'])
    const { mechanism } = findLimitSupport()
    const parents = mechanism.how === 'cgroup-v1' ? [...mechanism.parents.values()] : []
    const left = parents
      .flatMap(dir => readdirSync(dir))
      .filter(name => name.startsWith(`pen-${process.pid}-`))
    expect(left).toEqual([])
  })
})

describe('by watchdog', () => {
  test('a memory hog is ended within a second', async () => {
    const handle = open({ memory: (64 * MIB) as Bytes }, { support: WATCHDOG })
    const { hits, heard, output, ms } = await run(
      handle,
      sh(`(${hog(256)}; sleep 10) & sleep 10; echo survived`),
    )
    expect(heard).toMatchObject([{ limit: 'memory', what: 'killed', bound: 64 * MIB }])
    expect(hits).toHaveLength(1)
    expect(output).toBe('')
    expect(ms).toBeLessThan(1500)
  })

  test('a file on the sandbox’s own /tmp is memory too', async () => {
    const handle = open({ memory: (64 * MIB) as Bytes }, { support: WATCHDOG })
    const { hits, output } = await run(handle, sh('head -c 128m /dev/zero >/tmp/x; sleep 10; echo survived'))
    expect(hits).toMatchObject([{ limit: 'memory', what: 'killed' }])
    expect(output).toBe('')
  })

  test('pages that processes share count once', async () => {
    const handle = open({ memory: (150 * MIB) as Bytes }, { support: WATCHDOG })
    const script =
      'my $x = ""; vec($x, (80 << 20) - 1, 8) = 1; for (1..3) { if (!fork) { sleep 1; exit } } sleep 1; print "survived\\n"'
    const { hits, output } = await run(handle, ['perl', '-e', script])
    expect({ hits, output }).toEqual({ hits: [], output: 'survived\n' })
  })

  // A busy machine gives the program less than half a CPU, and more than a tenth.
  test('a tenth of a CPU is about a tenth, also for processes that left their parent', async () => {
    const handle = open({ cpus: 0.1 }, { support: WATCHDOG })
    const { hits, output } = await run(handle, ['bash', '-c', `(setsid bash -c '${SPIN}') & wait; times`])
    expect(hits).toMatchObject([{ limit: 'cpus', what: 'throttled' }])
    expect(cpuSeconds(output)).toBeGreaterThan(0.05)
    expect(cpuSeconds(output)).toBeLessThan(0.3)
  })

  onlyWhen(availableParallelism() > 1)('programs count as many CPUs as the limit says', async () => {
    const { output } = await run(open({ cpus: 1 }, { support: WATCHDOG }), ['nproc'])
    expect(output).toBe('1\n')
  })

  test('a shell with job control does not see its children stopped', async () => {
    const handle = open({ cpus: 0.5 }, { support: WATCHDOG })
    const { output } = await run(handle, ['bash', '-c', `set -m; (${SPIN}); echo "ended $?"; jobs`])
    expect(output).toBe('ended 0\n')
  })

  onlyWhen(!isRoot)('a fork bomb is refused by the kernel, and reported', async () => {
    const handle = open({ pids: 20 }, { support: WATCHDOG })
    const { hits, output } = await run(handle, sh(`(${forks(200)}) | tail -1; exec sleep 0.3`))
    expect(hits).toMatchObject([{ limit: 'pids', what: 'refused', bound: 20 }])
    expect(Number(output) || 0).toBeLessThan(21)
  })

  test('a quick command is never checked', async () => {
    const { hits, code } = await run(open({}, { support: WATCHDOG }), ['true'])
    expect({ hits, code }).toEqual({ hits: [], code: 0 })
  })
})

test('a sandbox gets at most half of the user’s own process limit, and this stops no start', async () => {
  const sleeping = Bun.spawn(['prlimit', '--nproc=100:100', 'sleep', '10'])
  const bound = () =>
    /Max processes +(\d+ +\d+)/.exec(readFileSync(`/proc/${sleeping.pid}/limits`, 'utf8'))?.[1]
  while (bound()?.startsWith('100 ') !== true) await Bun.sleep(5)
  await setProcessLimit(sleeping.pid, { nproc: 4097 })
  expect(bound()).toMatch(/^50 +50$/)
  await setProcessLimit(sleeping.pid, { nproc: 20 })
  expect(bound()).toMatch(/^20 +20$/)
  sleeping.kill('SIGKILL')
})

test('a hit names the limit and the flag that doubles it', () => {
  const of = (limit: keyof Limits, bound: number) =>
    raiseLimit({ limit, what: 'refused', used: bound, bound, amount: 1 }).split(' at ')[0]
  expect([of('pids', 4096), of('memory', 4 * 2 ** 30), of('wall', 3_600_000), of('cpus', 0.5)]).toEqual([
    '--limit pids=8192',
    '--limit memory=8GiB',
    '--limit wall=2h',
    '--limit cpus=1',
  ])
})

test('a hit is reported in one line', () => {
  expect(describeHit({ limit: 'disk', what: 'killed', used: 1.1 * 2 ** 30, bound: 2 ** 30, amount: 1 })).toBe(
    'the sandbox was stopped: it wrote 1.1 GiB, limits.disk is 1 GiB',
  )
})

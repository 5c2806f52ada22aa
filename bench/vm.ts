/**
 * A virtual machine beside the process backend, in one run and interleaved. It measures the first command in the
 * project, cold and from a snapshot. Then it measures a warm command, memory, and everyday work on files.
 *
 *   bun bench/vm.ts [--json] [--rounds=N]
 *
 * Targets, without KVM, on a machine that does nothing else: 1.2 s to the first command from a snapshot, and 3.5 s cold.
 * A warm command takes at most 50 ms, and a restored machine has at most 250 MB.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pssOf, withDescendants } from './start/memory.ts'

const PEN = join(import.meta.dir, '../dist/pen')
const ROUNDS = Number(process.argv.find(word => word.startsWith('--rounds='))?.slice(9) ?? 5)
const SIDES = ['process', 'vm'] as const
type Side = (typeof SIDES)[number]

const home = mkdtempSync(join(tmpdir(), 'pen-bench-vm-'))
const env = { PATH: process.env['PATH'] ?? '', HOME: home }
const snapshots = join(home, '.pen/cache/vm-snapshots')

function run(argv: readonly string[], cwd: string): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (exitCode !== 0) throw new Error(`${argv.slice(0, 4).join(' ')}: ${exitCode} ${stderr}`)
  return stdout.toString().trim()
}

function timed(argv: readonly string[], cwd: string): number {
  const began = performance.now()
  run(argv, cwd)
  return performance.now() - began
}

const once = (side: Side, ...words: string[]): string[] => [PEN, 'run', '--backend', side, '--', ...words]
const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** 5,000 files in a repository, and a small npm project. */
function project(name: string): string {
  const dir = join(home, name)
  for (let i = 0; i < 50; i++) {
    mkdirSync(join(dir, `d${i}`), { recursive: true })
    for (let j = 0; j < 100; j++) writeFileSync(join(dir, `d${i}/f${j}`), `${i} ${j}\n`)
  }
  writeFileSync(join(dir, 'package.json'), '{ "scripts": { "test": "node --test sum.test.mjs" } }')
  writeFileSync(join(dir, 'sum.test.mjs'), SUM_TEST)
  const git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@b.c']
  run([...git, 'init', '--quiet'], dir)
  run([...git, 'add', '.'], dir)
  run([...git, 'commit', '--quiet', '-m', 'files'], dir)
  return dir
}

const SUM_TEST = `import { test } from 'node:test'
import { equal } from 'node:assert'
for (let i = 0; i < 20; i++) test('sum ' + i, () => equal(i + i, 2 * i))
`

/** What a developer does, each as one command in a sandbox that runs. */
const WORK: Readonly<Record<string, readonly string[]>> = {
  'a command (`true`)': ['true'],
  'write 64 MiB': ['sh', '-c', 'head -c 64M /dev/zero >big'],
  'read 64 MiB': ['sh', '-c', 'cat big >/dev/null'],
  'write 1,000 files': [
    'sh',
    '-c',
    'mkdir -p new; i=0; while [ $i -lt 1000 ]; do echo $i >new/$i; i=$((i+1)); done',
  ],
  '`git status` of 5,000 files': ['git', 'status', '--short'],
  '`node -e 0`': ['node', '-e', '0'],
  '`npm test`': ['npm', 'test', '--silent'],
}

type Times = Record<string, Record<Side, number>>

function firstCommands(dir: string): {
  readonly cold: number
  readonly restored: number
  readonly process: number
} {
  const cold: number[] = []
  const restored: number[] = []
  const plain: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    rmSync(snapshots, { recursive: true, force: true })
    cold.push(timed(once('vm', 'true'), dir))
    restored.push(timed(once('vm', 'true'), dir))
    plain.push(timed(once('process', 'true'), dir))
  }
  return { cold: median(cold), restored: median(restored), process: median(plain) }
}

function work(dirs: Readonly<Record<Side, string>>): Times {
  const times = new Map(
    Object.keys(WORK).map(name => [name, { process: [] as number[], vm: [] as number[] }]),
  )
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, argv] of Object.entries(WORK)) {
      for (const side of SIDES) times.get(name)?.[side].push(timed([PEN, 'exec', '--', ...argv], dirs[side]))
    }
  return Object.fromEntries(
    [...times].map(([name, { process, vm }]) => [name, { process: median(process), vm: median(vm) }]),
  )
}

/** Of the supervisor and everything below it, with the guest's memory. */
function memoryOf(dir: string): number {
  const { pid } = JSON.parse(run([PEN, 'status', '--json'], dir)) as { pid: number }
  return withDescendants(pid).reduce((sum, each) => sum + pssOf(each), 0) / 1e6
}

const verdict = (value: number, most: number): string =>
  `at most ${most}: ${value <= most ? 'met' : 'MISSED'}`

try {
  // Prepares the kernel.
  const dirs = { process: project('process'), vm: project('vm') }
  run(once('vm', 'true'), dirs.vm)
  const first = firstCommands(dirs.vm)
  for (const side of SIDES) run([PEN, 'start', '--detach', '--backend', side], dirs[side])
  const memory = { process: memoryOf(dirs.process), vm: memoryOf(dirs.vm) }
  const times = work(dirs)
  const worked = memoryOf(dirs.vm)
  for (const side of SIDES) run([PEN, 'stop'], dirs[side])
  const report = { load: loadavg(), rounds: ROUNDS, first, memory: { ...memory, worked }, times }
  if (process.argv.includes('--json')) console.log(JSON.stringify(report))
  else {
    const warm = Object.values(times)[0]?.vm ?? Number.NaN
    console.log(
      `  load ${loadavg()
        .map(load => load.toFixed(1))
        .join(' ')}, medians of ${ROUNDS}, ms`,
    )
    console.log(`  first command, process ${first.process.toFixed(0)}`)
    console.log(`  first command, restored ${first.restored.toFixed(0)}, ${verdict(first.restored, 1200)}`)
    console.log(`  first command, cold ${first.cold.toFixed(0)}, ${verdict(first.cold, 3500)}`)
    console.log(`  warm command ${warm.toFixed(0)}, ${verdict(warm, 50)}`)
    console.log(
      `  memory ${memory.vm.toFixed(0)} MB, ${verdict(memory.vm, 250)}; after the work ${worked.toFixed(0)}`,
    )
    console.log(`  memory of the process backend ${memory.process.toFixed(0)} MB`)
    for (const [name, { process, vm }] of Object.entries(times))
      console.log(
        `  ${name.padEnd(30)} process ${process.toFixed(0)}, vm ${vm.toFixed(0)}: ${(vm / process).toFixed(1)}`,
      )
  }
} finally {
  rmSync(home, { recursive: true, force: true })
}

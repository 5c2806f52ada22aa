/**
 * Notices when the start becomes slow, also on a busy machine. `npm run bench -- start` measures it beside other
 * sandboxes on a quiet one.
 */
import { afterAll, beforeAll, expect } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { skipUnless } from '../skip.ts'
import { QUEUE, Stopwatch } from '../stopwatch.ts'

const PEN = join(import.meta.dir, '../../dist/pen')
const BWRAP = ['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-all', 'true']
const RUN = [PEN, 'run', '--offline', '--', 'true']

let root = ''
beforeAll(() => {
  root = realpathSync(mkdtempSync('/var/tmp/pen-start-'))
  for (const name of ['home', 'empty', 'full']) mkdirSync(join(root, name))
  for (let i = 0; i < 20; i++) {
    mkdirSync(join(root, `full/d${i}`))
    for (let j = 0; j < 1000; j++) writeFileSync(join(root, `full/d${i}/f${j}`), '')
  }
}, 60_000)
afterAll(() => rmSync(root, { recursive: true, force: true }))

interface Cost {
  readonly wall: number
  /** CPU time of the program and its waited-for children, in milliseconds. */
  readonly cpu: number
}

function run(argv: readonly string[], project: string): Cost {
  const began = performance.now()
  const { exitCode, resourceUsage } = Bun.spawnSync([...argv], {
    cwd: join(root, project),
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: join(root, 'home') },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  expect(exitCode).toBe(0)
  return { wall: performance.now() - began, cpu: Number(resourceUsage.cpuTime.total) / 1000 }
}

/**
 * System calls about paths until the command begins, of pen and everything it starts: the same work makes the
 * same number. The search at the end of a run grows with the project, and is limited by time instead.
 */
function questions(project: string): number {
  const file = join(root, 'trace')
  run(['strace', '-f', '-qq', '-e', 'trace=%file', '-e', 'signal=none', '-o', file, ...RUN], project)
  const lines = readFileSync(file, 'latin1').trimEnd().split('\n')
  const command = lines.findIndex(line => /execve\("[^"]*\/bin\/true"/.test(line))
  expect(command).toBeGreaterThan(0)
  return lines.slice(0, command).filter(line => !line.includes(' resumed>')).length
}

const works = Bun.which('bwrap') !== null && Bun.spawnSync([...BWRAP]).exitCode === 0
const measured = skipUnless(works, 'bubblewrap that works is missing')
const counted = skipUnless(works && Bun.which('strace') !== null, 'bubblewrap or strace is missing')

measured(
  'a sandbox starts in a small multiple of the time of bubblewrap alone, and of the runtime',
  () => {
    const least = { raw: Infinity, wall: Infinity, idle: Infinity, cpu: Infinity }
    const ratios = () => ({ wall: least.wall / least.raw, cpu: least.cpu / least.idle })
    const watch = new Stopwatch()
    const began = performance.now()
    // Where processes wait for a CPU most of the time, pen's four wait more often than bubblewrap's one. There only
    // CPU time counts.
    const isBusy = () => watch.lost / QUEUE > (performance.now() - began) / 2
    const isSmall = () => (ratios().wall < 15 || isBusy()) && ratios().cpu < 7
    // The minimum of many runs is the time without other processes. A busy machine needs more runs to get it.
    for (let round = 0; round < 30 || (!isSmall() && performance.now() < began + 40_000); round++) {
      least.raw = Math.min(least.raw, run(BWRAP, 'empty').wall)
      least.idle = Math.min(least.idle, run([PEN, 'version'], 'empty').cpu)
      const pen = run(RUN, 'empty')
      least.wall = Math.min(least.wall, pen.wall)
      least.cpu = Math.min(least.cpu, pen.cpu)
    }
    if (!isBusy()) expect(ratios().wall).toBeLessThan(15)
    expect(ratios().cpu).toBeLessThan(7)
  },
  120_000,
)

counted('a start makes a bounded number of system calls about files', () => {
  run(RUN, 'empty')
  // About 30 of them are about the user's home and PATH. On a busy machine the supervisor gets further before the command
  // begins, so the minimum counts.
  let least = Infinity
  for (let round = 0; round < 10 && least >= 850; round++) least = Math.min(least, questions('empty'))
  expect(least).toBeLessThan(850)
})

counted(
  'a start in a project of 20,000 files makes no more of them than in an empty one',
  () => {
    for (const project of ['empty', 'full']) run(RUN, project)
    // The supervisor and bubblewrap run in parallel, and one run in sixteen looks at old audits: so the minimum counts.
    // A busy machine needs more runs to get it.
    const least = { empty: Infinity, full: Infinity }
    const differ = () => Math.abs(least.full - least.empty)
    for (let round = 0; round < 4 || (differ() >= 20 && round < 30); round++)
      for (const project of ['empty', 'full'] as const)
        least[project] = Math.min(least[project], questions(project))
    expect(differ()).toBeLessThan(20)
  },
  120_000,
)

/**
 * The start stays quick. `npm run bench -- start` measures it beside others on a quiet machine; this only notices when it
 * has become another thing, on a busy one too: so the times are minima of runs in turn, and what is exact is counted.
 */
import { afterAll, beforeAll, expect } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { skipUnless } from '../skip.ts'

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
    const costs = Array.from({ length: 30 }, () => ({
      raw: run(BWRAP, 'empty'),
      idle: run([PEN, 'version'], 'empty'),
      pen: run(RUN, 'empty'),
    }))
    const least = (cost: (of: (typeof costs)[number]) => number) => Math.min(...costs.map(cost))
    // A busy machine takes the processor from the longer of two more often: this bound has room for that.
    expect(least(({ pen }) => pen.wall) / least(({ raw }) => raw.wall)).toBeLessThan(15)
    // Processor time does not care who else runs.
    expect(least(({ pen }) => pen.cpu) / least(({ idle }) => idle.cpu)).toBeLessThan(7)
  },
  60_000,
)

counted('a start makes a bounded number of system calls about files', () => {
  run(RUN, 'empty')
  // About 30 of them are about the user's home and PATH.
  expect(questions('empty')).toBeLessThan(850)
})

counted('a start in a project of 20,000 files makes no more of them than in an empty one', () => {
  for (const project of ['empty', 'full']) run(RUN, project)
  // The supervisor and bubblewrap run in parallel, and one run in sixteen looks at old audits: the minimum of a
  // few.
  const least = (project: string) => Math.min(...[1, 2, 3, 4].map(() => questions(project)))
  expect(Math.abs(least('full') - least('empty'))).toBeLessThan(20)
})

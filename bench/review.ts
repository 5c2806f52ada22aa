/**
 * Review workspaces: the start beside one without review, `git status` inside, and 10,000 changed files shown and accepted. Interleaved,
 * in one run.
 *
 *   bun bench/review.ts [--json] [--rounds=N]
 *
 * Aims: at most 10 ms more at the start, `git status` within 20 %, a diff of 10,000 files in 1 s, their accept in 8 s.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'

const PEN = join(import.meta.dir, '../dist/pen')
const ROUNDS = Number(process.argv.find(word => word.startsWith('--rounds='))?.slice(9) ?? 20)
const DIRECTORIES = 100
const FILES = 100

const home = mkdtempSync(join(tmpdir(), 'pen-bench-review-'))
const project = join(home, 'project')
const env = { PATH: process.env['PATH'] ?? '', HOME: home }

/** `pen diff` ends with 1 when there are changes. */
function run(argv: readonly string[], expected = 0): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (exitCode !== expected) throw new Error(`${argv.slice(0, 4).join(' ')}: ${exitCode} ${stderr}`)
  return stdout.toString()
}

/** Milliseconds. */
function timed(argv: readonly string[], expected = 0): number {
  const began = performance.now()
  run(argv, expected)
  return performance.now() - began
}

/** The second of two: a new mount has looked up no file yet. */
const WARM_STATUS = `git status --short; a=$(date +%s%N); git status --short; echo $((($(date +%s%N) - a) / 1000))`
const status = (argv: readonly string[]): number => Number(run([...argv, 'sh', '-c', WARM_STATUS])) / 1000
const start = (argv: readonly string[]): number => timed([...argv, 'true'])

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Both ways in turn. */
function compare(measure: (argv: readonly string[]) => number): {
  readonly plain: number
  readonly review: number
} {
  const plain: number[] = []
  const review: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    plain.push(measure([PEN, 'run', '--offline', '--']))
    review.push(measure([PEN, 'run', '--offline', '--review', '--']))
  }
  return { plain: median(plain), review: median(review) }
}

try {
  for (let i = 0; i < DIRECTORIES; i++) {
    mkdirSync(join(project, `d${i}`), { recursive: true })
    for (let j = 0; j < FILES; j++) writeFileSync(join(project, `d${i}/f${j}`), `${i} ${j}\n`)
  }
  const git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@b.c']
  for (const words of [
    ['init', '-q'],
    ['add', '.'],
    ['commit', '-q', '-m', 'files'],
  ])
    run([...git, ...words])
  const starts = compare(start)
  const statuses = compare(status)
  run([PEN, 'run', '--offline', '--review', '--', 'sh', '-c', 'for f in d*/f*; do echo changed >>$f; done'])
  const diff = timed([PEN, 'diff'], 1)
  const accept = timed([PEN, 'accept', '--yes'])
  const report = { load: loadavg(), rounds: ROUNDS, start: starts, status: statuses, diff, accept }
  if (process.argv.includes('--json')) console.log(JSON.stringify(report))
  else {
    const ms = (value: number): string => value.toFixed(1)
    const verdict = (isMet: boolean): string => (isMet ? 'met' : 'MISSED')
    const more = starts.review - starts.plain
    const ratio = statuses.review / statuses.plain
    console.log(`  load ${report.load.map(load => load.toFixed(1)).join(' ')}, medians of ${ROUNDS}, ms`)
    console.log(
      `  start ${ms(starts.plain)}, with review ${ms(more)} more, at most 10: ${verdict(more <= 10)}`,
    )
    console.log(
      `  git status ${ms(statuses.plain)}, with review × ${ratio.toFixed(2)}, at most 1.20: ${verdict(ratio <= 1.2)}`,
    )
    const count = DIRECTORIES * FILES
    console.log(`  pen diff of ${count} files ${ms(diff)}, at most 1000: ${verdict(diff <= 1000)}`)
    console.log(`  pen accept of ${count} files ${ms(accept)}, at most 8000: ${verdict(accept <= 8000)}`)
  }
} finally {
  rmSync(home, { recursive: true, force: true })
}

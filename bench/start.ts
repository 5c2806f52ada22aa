/**
 * How long `pen run --offline -- true` takes beside raw bubblewrap and other sandboxes. One hyperfine invocation per
 * user: the current user and, when that is root, an ordinary user too.
 *
 *   bun bench/start.ts [--json] [--runs N]
 *
 * Targets:
 * - at most 3 times raw bubblewrap and a tenth of sandbox-runtime
 * - a project of 200,000 files within 10 % of an empty one
 * - 45 MB for all of pen while the command runs
 */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { cpus, release } from 'node:os'
import { join } from 'node:path'
import { type Memory, memoryOf } from './start/memory.ts'
import {
  type Contestant,
  installPeers,
  type Missing,
  RAW,
  rawBubblewrap,
  SANDBOX_RUNTIME,
  versions,
} from './start/peers.ts'

const json = process.argv.includes('--json')
const runs = Number(process.argv[process.argv.indexOf('--runs') + 1]) || 40
const built = join(import.meta.dir, '../dist/pen')
const peers = '/var/tmp/pen-bench-peers'
const FILES = 200_000

interface Timing {
  readonly name: string
  readonly median: number
  readonly min: number
  readonly max: number
  readonly user: number
  readonly system: number
}

interface User {
  readonly name: string
  /** Words before a command line that run it as this user. */
  readonly wrap: readonly string[]
  readonly uid: number
}

function users(home: (name: string) => string): User[] {
  const self = process.getuid?.() ?? 0
  if (self !== 0) return [{ name: 'user', uid: self, wrap: ['env', `HOME=${home('user')}`] }]
  const uid = 65_534
  const wrap = [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${uid}`,
    '--clear-groups',
    'env',
    `HOME=${home('user')}`,
  ]
  return [
    { name: 'root', uid: 0, wrap: ['env', `HOME=${home('root')}`] },
    { name: 'user', uid, wrap },
  ]
}

function works(argv: readonly string[], cwd: string): string | undefined {
  const tried = Bun.spawnSync([...argv], { cwd, stdout: 'ignore', stderr: 'pipe', timeout: 20_000 })
  if (tried.exitCode === 0) return undefined
  return `exit ${tried.exitCode}: ${tried.stderr.toString().split('\n')[0]?.slice(0, 100) ?? ''}`
}

/** hyperfine splits these words again. None of ours contains a quote. */
const line = (argv: readonly string[]): string => argv.map(word => `'${word}'`).join(' ')

function measure(contestants: readonly Contestant[], user: User, cwd: string, out: string): Timing[] {
  const named = contestants.flatMap(({ name, argv }) => ['--command-name', name, line(argv)])
  const flags = ['-N', '--warmup', '5', '--runs', String(runs), '--style', 'none', '--export-json', out]
  const made = Bun.spawnSync([...user.wrap, 'hyperfine', ...flags, ...named], {
    cwd,
    stdout: 'ignore',
    stderr: 'pipe',
  })
  if (made.exitCode !== 0) throw new Error(`hyperfine failed: ${made.stderr}`)
  const { results } = JSON.parse(readFileSync(out, 'utf8')) as { results: (Timing & { command: string })[] }
  const ms = (seconds: number): number => Math.round(seconds * 1e5) / 100
  return results.map(({ command, median, min, max, user: u, system }) => ({
    name: command,
    median: ms(median),
    min: ms(min),
    max: ms(max),
    user: ms(u),
    system: ms(system),
  }))
}

function makeFiles(dir: string, own: (path: string) => void): void {
  for (let i = 0; i < 200; i++) {
    const sub = join(dir, `d${i}`)
    mkdirSync(sub)
    own(sub)
    for (let j = 0; j < FILES / 200; j++) writeFileSync(join(sub, `f${j}`), '')
  }
}

async function measureAs(user: User, root: string, pen: string, found: (Contestant | Missing)[]) {
  const place = (name: string): string => {
    const path = join(root, user.name, name)
    mkdirSync(path, { recursive: true })
    chownSync(path, user.uid, user.uid)
    return path
  }
  const empty = place('empty')
  const full = place('full')
  makeFiles(full, path => chownSync(path, user.uid, user.uid))
  // Flush what was just written, so that the measured writes do not wait for it.
  Bun.spawnSync(['sync'])
  const run = ['run', '--offline', '--', 'true']
  const missing: Missing[] = []
  const contestants = [
    rawBubblewrap(),
    { name: 'pen', argv: [pen, ...run] },
    { name: `pen, ${FILES} files`, argv: ['env', '-C', full, pen, ...run] },
    { name: 'pen, through env', argv: ['env', '-C', empty, pen, ...run] },
    ...found.flatMap(peer => ('argv' in peer ? [peer] : [])),
  ].filter(contestant => {
    const problem = works([...user.wrap, ...contestant.argv], empty)
    if (problem !== undefined) missing.push({ name: contestant.name, reason: problem })
    return problem === undefined
  })
  missing.push(...found.flatMap(peer => ('reason' in peer ? [peer] : [])))
  const results = place('results')
  const timings = measure(contestants, user, empty, join(results, 'hyperfine.json'))
  return { user: user.name, timings, missing, memory: await memoryOf(pen, { cwd: empty, wrap: user.wrap }) }
}

type Measured = Awaited<ReturnType<typeof measureAs>>

function targets({
  timings,
  memory,
}: Measured): { claim: string; value: string; holds: boolean | undefined }[] {
  const of = (name: string): number => timings.find(timing => timing.name === name)?.median ?? Number.NaN
  const ratio = (claim: string, value: number, bound: number) => ({
    claim,
    value: Number.isNaN(value) ? 'not measured' : value.toFixed(2),
    holds: Number.isNaN(value) ? undefined : value <= bound,
  })
  return [
    ratio('pen / raw bubblewrap, at most 3', of('pen') / of(RAW), 3),
    ratio('pen / sandbox-runtime, at most 0.1', of('pen') / of(SANDBOX_RUNTIME), 0.1),
    ratio(`${FILES} files / empty, at most 1.1`, of(`pen, ${FILES} files`) / of('pen, through env'), 1.1),
    ratio('MiB of everything of pen, at most 42.9 (45 MB)', memory.pssMiB, 45e6 / 2 ** 20),
  ]
}

function print(measured: Measured): void {
  const raw = measured.timings.find(timing => timing.name === RAW)?.median ?? Number.NaN
  console.log(`\nas ${measured.user}: ${runs} runs each, milliseconds`)
  console.log(`  ${''.padEnd(22)}  median     min     max   × bwrap`)
  for (const { name, median, min, max } of measured.timings) {
    const cells = [median, min, max].map(value => value.toFixed(2).padStart(7)).join(' ')
    console.log(`  ${name.padEnd(22)} ${cells} ${(median / raw).toFixed(2).padStart(9)}`)
  }
  for (const { name, reason } of measured.missing) console.log(`  ${name.padEnd(22)} not measured: ${reason}`)
  const { pssMiB, processes } = measured.memory satisfies Memory
  console.log(`  memory: ${pssMiB.toFixed(1)} MiB in ${processes.join(', ')}`)
  for (const { claim, value, holds } of targets(measured))
    console.log(`  ${holds === undefined ? '?' : holds ? 'ok' : 'MISSED'}  ${claim}: ${value}`)
}

if (Bun.which('hyperfine') === null) {
  console.log('not measured: hyperfine is not installed')
} else {
  const root = mkdtempSync('/var/tmp/pen-bench-start-')
  chmodSync(root, 0o755)
  try {
    const pen = join(root, 'pen')
    copyFileSync(built, pen)
    chmodSync(pen, 0o755)
    const home = (name: string): string => join(root, name)
    const found = installPeers(peers)
    const all: Measured[] = []
    for (const user of users(home)) {
      mkdirSync(home(user.name))
      chownSync(home(user.name), user.uid, user.uid)
      all.push(await measureAs(user, root, pen, found))
    }
    const machine = `${cpus().length} cores, Linux ${release()}, load ${readFileSync('/proc/loadavg', 'utf8').split(' ')[0]}`
    if (json)
      console.log(
        JSON.stringify({
          machine,
          versions: versions(peers),
          measured: all.map(m => ({ ...m, targets: targets(m) })),
        }),
      )
    else {
      console.log(machine, versions(peers))
      for (const measured of all) print(measured)
    }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

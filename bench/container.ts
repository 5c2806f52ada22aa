/**
 * A project's container beside the engine: `pen start` and `run` with the same flags, `pen exec` and `exec` in the
 * same container. Also the memory of fifty idle sandboxes.
 *
 *   bun bench/container.ts [--json] [--rounds=N] [--sandboxes=N]
 *
 * Targets: start at most 1.25 times the engine, exec at most a fifth of it, 50 MB for each idle sandbox. The
 * engine is the current user's podman with separate storage, so the benchmark touches none of the machine's
 * containers.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { sandboxId } from '../src/config/project.ts'
import { EVERYBODY } from '../test/conformance/launcher.ts'
import { podmanOf } from '../test/engines/podman.ts'
import { pssOf, withDescendants } from './start/memory.ts'

const PEN = join(import.meta.dir, '../dist/pen')
const flag = (name: string): string | undefined =>
  process.argv.find(word => word.startsWith(`--${name}=`))?.slice(name.length + 3)
const ROUNDS = Number(flag('rounds') ?? 12)
const SANDBOXES = Number(flag('sandboxes') ?? 50)

const [me] = EVERYBODY
if (me === undefined) throw new Error('the user for this benchmark is missing')
const engine = podmanOf(me)
const home = mkdtempSync(join(tmpdir(), 'pen-bench-container-'))
const env = { PATH: process.env['PATH'] ?? '', HOME: home, ...engine.env }

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

const pen = (...words: string[]): string[] => [PEN, ...words]
const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

function project(name: string): string {
  const dir = join(home, name)
  mkdirSync(dir, { recursive: true })
  run(pen('init'), dir)
  return dir
}

/** The arguments that pen gave the engine, without the name, the pid file and the program. */
function sameFlags(dir: string): string[] {
  const container = `pen-${sandboxId(dir)}`
  const format = '{{range .Config.CreateCommand}}{{println .}}{{end}}'
  const words = run(engine.command(['container', 'inspect', '--format', format, container]), dir).split('\n')
  const image = words.findIndex(word => word.startsWith('--entrypoint=')) + 1
  return words.slice(1, image + 1).map(word => {
    if (word.startsWith('--name=')) return '--name=raw'
    if (word.startsWith('--entrypoint=')) return '--entrypoint=/bin/sleep'
    if (word.startsWith('--cidfile=')) return `--cidfile=${home}/raw.id`
    return word.startsWith('--pidfile=') ? `--pidfile=${home}/raw.pid` : word
  })
}

/** pen's own bind sources vanish with a run. Copies replace them, so that the engine alone mounts the same. */
function withCopies(words: readonly string[]): string[] {
  return words.map((word, n) => {
    const source = /(?:^|,)"?source=([^,"]+)/.exec(word)?.[1]
    if (source === undefined || !source.startsWith(join(home, '.pen'))) return word
    const copy = join(home, `copy-${n}`)
    run(['cp', '-a', source, copy], home)
    return word.replace(source, copy)
  })
}

interface Side {
  readonly raw: number
  readonly pen: number
}

/** Engines clean up for a while after a container is gone. The next measurement must not pay for that. */
function settle(): void {
  const ticks = () => {
    const all = (readFileSync('/proc/stat', 'latin1').split('\n')[0] ?? '').split(/\s+/).slice(1).map(Number)
    return { all: all.reduce((sum, each) => sum + each, 0), idle: (all[3] ?? 0) + (all[4] ?? 0) }
  }
  for (const deadline = performance.now() + 3000; performance.now() < deadline; ) {
    const before = ticks()
    Bun.sleepSync(100)
    const after = ticks()
    if (after.idle - before.idle > 0.9 * (after.all - before.all)) return
  }
}

function compareStart(dir: string): Side {
  run(pen('start', '--detach', '--backend', 'podman'), dir)
  const words = withCopies(sameFlags(dir))
  run(pen('stop'), dir)
  const raw: number[] = []
  const ours: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    settle()
    raw.push(timed(engine.command([...words, '300']), dir))
    run(engine.command(['rm', '--force', '--time=0', 'raw']), dir)
    rmSync(`${home}/raw.id`)
    settle()
    ours.push(timed(pen('start', '--detach', '--backend', 'podman'), dir))
    run(pen('stop'), dir)
  }
  return { raw: median(raw), pen: median(ours) }
}

function compareExec(dir: string): Side {
  run(pen('start', '--detach', '--backend', 'podman'), dir)
  const container = `pen-${sandboxId(dir)}`
  const raw: number[] = []
  const ours: number[] = []
  for (let round = 0; round < ROUNDS * 2; round++) {
    raw.push(timed(engine.command(['exec', container, 'true']), dir))
    ours.push(timed(pen('exec', '--', 'true'), dir))
  }
  run(pen('stop'), dir)
  return { raw: median(raw), pen: median(ours) }
}

interface Crowd {
  readonly answered: number
  /** Memory of the supervisor, the exec daemon, the init and the engine's monitor, for one sandbox. */
  readonly mebibytes: number
}

function crowd(): Crowd {
  const dirs = Array.from({ length: SANDBOXES }, (_, n) => project(`crowd-${n}`))
  try {
    for (const dir of dirs) run(pen('start', '--detach', '--backend', 'podman'), dir)
    const answered = dirs.filter(dir => run(pen('exec', '--', 'echo', 'here'), dir) === 'here').length
    Bun.sleepSync(2000)
    const bytes = dirs.reduce((sum, dir) => {
      const supervisor = JSON.parse(run(pen('status', '--json'), dir)) as { pid: number }
      const format = '{{.State.ConmonPid}}'
      const monitor = run(
        engine.command(['container', 'inspect', '--format', format, `pen-${sandboxId(dir)}`]),
        dir,
      )
      return (
        sum +
        [...withDescendants(supervisor.pid), ...withDescendants(Number(monitor))].reduce(
          (all, pid) => all + pssOf(pid),
          0,
        )
      )
    }, 0)
    return { answered, mebibytes: bytes / 2 ** 20 / SANDBOXES }
  } finally {
    for (const dir of dirs) run(pen('stop'), dir)
  }
}

const verdict = (met: boolean): string => (met ? 'met' : 'MISSED')

try {
  const dir = project('one')
  run(pen('build', '--quiet'), dir)
  const start = compareStart(dir)
  const exec = compareExec(dir)
  const idle = crowd()
  const report = {
    load: loadavg(),
    engine: engine.name,
    start: { ...start, ratio: start.pen / start.raw },
    exec: { ...exec, ratio: exec.pen / exec.raw },
    crowd: { sandboxes: SANDBOXES, ...idle },
  }
  if (process.argv.includes('--json')) console.log(JSON.stringify(report))
  else {
    const row = (name: string, side: Side, most: number): void =>
      console.log(
        `  ${name.padEnd(6)} ${engine.name}'s own ${side.raw.toFixed(1)} ms, pen ${side.pen.toFixed(1)} ms: ${(side.pen / side.raw).toFixed(2)}, at most ${most}: ${verdict(side.pen / side.raw <= most)}`,
      )
    row('start', start, 1.25)
    row('exec', exec, 0.2)
    console.log(
      `  ${SANDBOXES} sandboxes: ${idle.answered} answer, ${idle.mebibytes.toFixed(1)} MiB each, at most 47.7 (50 MB): ${verdict(idle.answered === SANDBOXES && idle.mebibytes <= 50e6 / 2 ** 20)}`,
    )
  }
} finally {
  rmSync(home, { recursive: true, force: true })
}

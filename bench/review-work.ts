/**
 * Review workspaces at work: `npm ci` with and without review, and three sandboxes at once. A file of 4 GiB and 100,000 changed files are
 * shown, then accepted, with a SIGKILL of the first accept. Takes minutes, 10 GiB of disk, and packages from npm.
 *
 *   bun bench/review-work.ts [npm] [three] [large] [many]
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'

const PEN = join(import.meta.dir, '../dist/pen')
const PACKAGES = ['eslint@9', 'webpack@5', 'typescript@5', 'lodash@4']
const ROUNDS = 5
const FILES = 100_000
const PARTS: Readonly<Record<string, () => void | Promise<void>>> = { npm, three, large, many }

const home = mkdtempSync(join(tmpdir(), 'pen-bench-review-'))
const project = join(home, 'project')
const cache = join(home, 'npm')
const env = { PATH: process.env['PATH'] ?? '', HOME: home }

/** `pen diff` ends with 1 when there are changes. `wall` is in seconds. */
function run(argv: readonly string[], codes = [0]): { readonly wall: number; readonly stdout: string } {
  const began = performance.now()
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (!codes.includes(exitCode)) throw new Error(`${argv.join(' ').slice(0, 200)}: ${exitCode} ${stderr}`)
  return { wall: (performance.now() - began) / 1000, stdout: stdout.toString() }
}

const review = (script: string, ...flags: readonly string[]) =>
  run([PEN, 'run', '--offline', '--review', '--limit', 'disk=20GiB', ...flags, '--', 'sh', '-ec', script])
const show = (what: string, seconds: number): void => console.log(`  ${what}: ${seconds.toFixed(2)} s`)
const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

function npm(): void {
  writeFileSync(join(project, 'package.json'), '{ "private": true }')
  run(['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--cache', cache, ...PACKAGES])
  const remove = (): void => rmSync(join(project, 'node_modules'), { recursive: true, force: true })
  remove()
  const ci = ['npm', 'ci', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--cache', cache]
  const [plain, layered]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    plain.push(run([PEN, 'run', '--offline', '--write', cache, '--', ...ci]).wall)
    remove()
    layered.push(run([PEN, 'run', '--offline', '--review', '--write', cache, '--', ...ci]).wall)
    if (round < ROUNDS - 1) run([PEN, 'discard', '--yes'])
  }
  const [a, b] = [median(plain), median(layered)]
  console.log(`  npm ci: ${a.toFixed(2)} s, with review ${b.toFixed(2)} s, × ${(b / a).toFixed(2)}, aim 1.20`)
  show('pen diff of node_modules', run([PEN, 'diff'], [1]).wall)
  show('pen accept of node_modules', run([PEN, 'accept', '--yes']).wall)
}

/** Each reads the same 200 MiB by mapping it, and changes 100 files. */
async function three(): Promise<void> {
  run([
    'sh',
    '-c',
    'head -c 200M /dev/urandom > data; mkdir many; for i in $(seq 1000); do echo $i > many/$i; done',
  ])
  const map = `import mmap, os, time
f = open('data'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); sum(m[i] for i in range(0, len(m), 4096))
for i in range(1, 101): open('many/%d' % i, 'a').write('x')
open('ready', 'w'); time.sleep(600)`
  const names = ['one', 'two', 'three']
  const argv = (name: string) => ['run', '--offline', '--review', '--name', name, '--', 'python3', '-c', map]
  const children = names.map(name =>
    Bun.spawn([PEN, ...argv(name)], { cwd: project, env, stdio: ['ignore', 'ignore', 'ignore'] }),
  )
  const layers = (): string[] =>
    run(['find', join(home, '.pen'), '-type', 'd', '-name', 'upper'])
      .stdout.trim()
      .split('\n')
  for (const end = Date.now() + 60_000; Date.now() < end; await Bun.sleep(200))
    if (run(['find', home, '-name', 'ready'], [0, 1]).stdout.trim().split('\n').length === names.length) break
  const sizes = layers().map(layer => Number(run(['du', '-sk', layer]).stdout.split('\t')[0]))
  const mapped = readdirSync('/proc').flatMap(pid => rollup(pid))
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(children.map(child => child.exited))
  const mib = (of: 'rss' | 'pss'): string => mapped.map(one => Math.round(one[of] / 1024)).join(' + ')
  console.log(
    `  layers on the disk: ${sizes.join(' + ')} KiB, of a project of ${run(['du', '-sk', project]).stdout.split('\t')[0]} KiB`,
  )
  console.log(`  resident: ${mib('rss')} MiB; their shares (PSS): ${mib('pss')} MiB`)
}

function rollup(pid: string): { readonly rss: number; readonly pss: number }[] {
  try {
    if (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('python3\0-c\0import mmap')) return []
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1])
    return [{ rss: kib('Rss'), pss: kib('Pss') }]
  } catch {
    return []
  }
}

async function large(): Promise<void> {
  for (const [what, make, killAfterMs] of [
    ['4 GiB of data', 'head -c 4G /dev/urandom > big', 1500],
    ['4 GiB of holes', 'truncate -s 4G big; printf end >> big', 60],
  ] as const) {
    show(`${what}: written inside`, review(make).wall)
    await diffAndAccept(what, killAfterMs)
    const { size, blocks } = statSync(join(project, 'big'))
    console.log(`  ${what}: ${size} B in ${Math.round((blocks * 512) / 2 ** 20)} MiB`)
    rmSync(join(project, 'big'))
  }
}

async function many(): Promise<void> {
  for (let i = 0; i < FILES; i++) {
    if (i % 1000 === 0) mkdirSync(join(project, `d${i / 1000}`))
    writeFileSync(join(project, `d${Math.floor(i / 1000)}/f${i}`), `${i}\n`)
  }
  show(
    '100,000 files changed inside',
    review(`python3 -c "
import glob
for f in glob.glob('d*/f*'): open(f, 'a').write('more\\n')"`).wall,
  )
  await diffAndAccept('100,000 files', 15_000)
}

async function diffAndAccept(what: string, killAfterMs: number): Promise<void> {
  const upper = run([
    'find',
    join(home, '.pen'),
    '-type',
    'd',
    '-path',
    '*/review/upper',
    '-prune',
  ]).stdout.trim()
  const sums = 'find . -type f ! -name package\\* | LC_ALL=C sort | xargs -d "\\n" sha256sum | sha256sum'
  const wanted = run(['sh', '-c', `cd '${upper}' && ${sums}`]).stdout
  show(`${what}: pen diff --stat`, run([PEN, 'diff', '--stat'], [1]).wall)
  const child = Bun.spawn([PEN, 'accept', '--yes'], {
    cwd: project,
    env,
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  await Bun.sleep(killAfterMs)
  child.kill('SIGKILL')
  await child.exited
  console.log(`  ${what}: killed after ${killAfterMs} ms; ended by ${child.signalCode ?? child.exitCode}`)
  if (child.signalCode !== null) show(`${what}: pen accept after that`, run([PEN, 'accept', '--yes']).wall)
  const left = run(['find', '.', '-name', '.pen-*']).stdout
  const is = run(['sh', '-c', sums]).stdout
  console.log(`  ${what}: ${is === wanted && left === '' ? 'as in the layer' : `DIFFERS ${left}`}`)
}

try {
  const named = process.argv.slice(2)
  for (const [name, part] of Object.entries(PARTS)) {
    if (named.length > 0 && !named.includes(name)) continue
    console.log(
      `${name} (load ${loadavg()
        .map(load => load.toFixed(1))
        .join(' ')} on ${cpus().length} CPUs)`,
    )
    rmSync(project, { recursive: true, force: true })
    mkdirSync(project)
    await part()
  }
} finally {
  rmSync(home, { recursive: true, force: true })
}

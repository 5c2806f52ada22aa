/**
 * One command by the library in a warm sandbox, beside sandbox-runtime's library: the same program, Node and
 * command, alternating in one run.
 *
 *   bun bench/exec.ts [--json] [--rounds=N]
 *
 * Targets: p50 at most 10 ms, and faster than sandbox-runtime.
 */
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, release } from 'node:os'
import { join } from 'node:path'
import { installPeers, SANDBOX_RUNTIME, versions } from './start/peers.ts'

const ROOT = join(import.meta.dir, '..')
const PEERS = '/var/tmp/pen-bench-peers'
const rounds = process.argv.find(word => word.startsWith('--rounds='))?.slice(9) ?? '100'

interface Measured {
  readonly times: Readonly<Record<string, readonly number[]>>
  readonly reason: string | null
}

const found = installPeers(PEERS).find(({ name }) => name === SANDBOX_RUNTIME)
const node = join(PEERS, 'node_modules/.bin/node')
const root = mkdtempSync('/var/tmp/pen-bench-exec-')
try {
  const project = join(root, 'project')
  mkdirSync(project)
  // An ordinary user: most programs run as one, and only there do both libraries keep their promises.
  const uid = process.getuid?.() === 0 ? 65_534 : (process.getuid?.() ?? 0)
  const become =
    process.getuid?.() === 0 ? ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] : []
  for (const dir of [root, project]) chownSync(dir, uid, uid)
  const ran = Bun.spawnSync(
    [
      ...become,
      found !== undefined && 'argv' in found ? node : 'node',
      join(import.meta.dir, 'exec/measure.mjs'),
      join(ROOT, 'dist/index.js'),
      join(ROOT, 'dist/pen'),
      join(PEERS, 'node_modules/@anthropic-ai/sandbox-runtime/dist/index.js'),
      project,
      rounds,
    ],
    { cwd: project, env: { PATH: process.env['PATH'] ?? '', HOME: root }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  if (ran.exitCode !== 0) throw new Error(`${ran.stdout}${ran.stderr}`)
  const { times, reason } = JSON.parse(ran.stdout.toString().trim().split('\n').at(-1) ?? '') as Measured
  report(times, reason)
} finally {
  rmSync(root, { recursive: true, force: true })
}

function report(times: Measured['times'], reason: string | null): void {
  const at = (name: string, share: number): number => {
    const sorted = [...(times[name] ?? [])].sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
  }
  const rows = Object.keys(times).map(name => ({ name, p50: at(name, 0.5), p95: at(name, 0.95) }))
  const ours = at('pen, library', 0.5)
  const theirs = at('sandbox-runtime, library', 0.5)
  const machine = `${cpus().length} cores, Linux ${release()}, load ${loadavg()[0]?.toFixed(2)}`
  if (process.argv.includes('--json')) {
    console.log(JSON.stringify({ machine, versions: versions(PEERS), rows, reason }))
    return
  }
  console.log(machine, versions(PEERS))
  console.log(`${rounds} commands each, in turn, milliseconds from call to output`)
  for (const { name, p50, p95 } of rows)
    console.log(`  ${name.padEnd(26)} p50 ${p50.toFixed(2).padStart(8)}   p95 ${p95.toFixed(2).padStart(8)}`)
  if (reason !== null) console.log(`  sandbox-runtime: not measured: ${reason}`)
  console.log(`  ${ours <= 10 ? 'ok' : 'MISSED'}  p50 at most 10 ms: ${ours.toFixed(2)}`)
  if (!Number.isNaN(theirs))
    console.log(
      `  ${ours < theirs ? 'ok' : 'MISSED'}  ahead of sandbox-runtime: ${(theirs / ours).toFixed(1)} times`,
    )
}

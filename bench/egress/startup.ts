/**
 * How long a command that does nothing takes: in bare bubblewrap, in pen with two hosts allowed, the same with a secret
 * for one of them, in sandbox-runtime.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findSandboxRuntime } from './peers.ts'

const BWRAP = ['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-all', 'true']
export const ONE_SECRET = 'pen, one secret'
const HOSTS = ['one.example.com', 'two.example.com']

/** Milliseconds of each run. Runs alternate, so that a busy moment of the machine affects all of them. */
export function measureStart(
  pen: string,
  directory: string,
  project: string,
  rounds: number,
): ReadonlyMap<string, readonly number[]> {
  const run = [pen, 'run', ...HOSTS.flatMap(host => ['--allow', `${host}:443`]), '--', 'true']
  const commands = new Map([
    ['bwrap', BWRAP],
    ['pen', run],
    [ONE_SECRET, run],
  ])
  // Another project, because a secret is in the live config.
  const other = join(directory, 'secret')
  mkdirSync(other)
  const env = { ...process.env, BENCH_KEY: 'sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz' }
  const add = [pen, 'secret', 'add', 'BENCH_KEY', '--env', 'BENCH_KEY', '--to', `${HOSTS[0]}:443`]
  const added = Bun.spawnSync(add, { cwd: other, env, stdio: ['ignore', 'ignore', 'pipe'] })
  if (added.exitCode !== 0) throw new Error(`pen secret add: ${added.stderr}`)
  const runtime = findSandboxRuntime(directory)
  if (runtime !== undefined) {
    const settings = join(directory, 'srt.json')
    const filesystem = { denyRead: [], allowWrite: ['.'], denyWrite: [] }
    writeFileSync(
      settings,
      JSON.stringify({ network: { allowedDomains: HOSTS, deniedDomains: [] }, filesystem }),
    )
    commands.set('sandbox-runtime', ['node', runtime.cli, '--settings', settings, 'true'])
  }
  const times = new Map([...commands.keys()].map(name => [name, [] as number[]]))
  for (let round = -1; round < rounds; round++)
    for (const [name, argv] of commands) {
      // The slow one runs less often: its time varies little compared to its size.
      if (name === 'sandbox-runtime' && round % 4 !== 0) continue
      const begin = performance.now()
      const cwd = name === ONE_SECRET ? other : project
      const { exitCode, stderr } = Bun.spawnSync(argv, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] })
      if (exitCode !== 0) throw new Error(`${name}: ${stderr}`)
      if (round >= 0) times.get(name)?.push(performance.now() - begin)
    }
  return times
}

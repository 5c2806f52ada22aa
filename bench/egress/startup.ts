/**
 * How long a command that does nothing takes: in bare bubblewrap, in pen with two hosts allowed, in
 * sandbox-runtime.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findSandboxRuntime } from './peers.ts'

const BWRAP = ['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-all', 'true']
const HOSTS = ['one.example.com', 'two.example.com']

/** Milliseconds of each run. Runs alternate, so that a busy moment of the machine affects all of them. */
export function measureStart(
  pen: string,
  directory: string,
  project: string,
  rounds: number,
): ReadonlyMap<string, readonly number[]> {
  const commands = new Map([
    ['bwrap', BWRAP],
    ['pen', [pen, 'run', ...HOSTS.flatMap(host => ['--allow', `${host}:443`]), '--', 'true']],
  ])
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
      const { exitCode, stderr } = Bun.spawnSync(argv, { cwd: project, stdio: ['ignore', 'ignore', 'pipe'] })
      if (exitCode !== 0) throw new Error(`${name}: ${stderr}`)
      if (round >= 0) times.get(name)?.push(performance.now() - begin)
    }
  return times
}

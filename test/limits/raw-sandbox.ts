/** The simplest sandbox to test limits on: a guard that joins the cgroups and becomes bubblewrap. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setProcessLimit } from '../../src/limits/prlimit.ts'
import { Stopwatch } from '../stopwatch.ts'

export interface RawSandbox {
  readonly init: number
  readonly ended: Promise<{ readonly code: number | null; readonly output: string; readonly ms: number }>
  kill(): void
}

export interface RawOptions {
  readonly joinFds?: readonly number[]
  /** Mounted read-write at its own path. */
  readonly writable?: readonly string[]
  readonly nproc?: number | undefined
  /** Called while the command waits. */
  readonly attach?: (init: number) => void
}

const GUARD =
  'for fd; do [ "$fd" = -- ] && break; eval "echo 0 >&$fd"; done; while [ "$1" != -- ]; do shift; done; shift; exec "$@"'

export async function startRaw(argv: readonly string[], options: RawOptions = {}): Promise<RawSandbox> {
  const dir = mkdtempSync(join(tmpdir(), 'pen-raw-'))
  const status = openSync(`${dir}/status`, 'w')
  const joins = options.joinFds ?? []
  const numbers = joins.map((_, i) => String(3 + i))
  const statusFd = 3 + joins.length
  const stopwatch = new Stopwatch()
  const child = Bun.spawn(
    [
      '/bin/sh',
      '-c',
      GUARD,
      'guard',
      ...numbers,
      '--',
      'bwrap',
      '--unshare-all',
      '--unshare-user',
      '--die-with-parent',
      '--ro-bind',
      '/',
      '/',
      '--dev',
      '/dev',
      '--proc',
      '/proc',
      '--size',
      String(1 << 30),
      '--tmpfs',
      '/tmp',
      // A clone of the repository may be there.
      '--ro-bind',
      process.execPath,
      process.execPath,
      ...(options.writable ?? []).flatMap(path => ['--bind', path, path]),
      '--json-status-fd',
      String(statusFd),
      '--block-fd',
      '0',
      '--',
      ...argv,
    ],
    { stdio: ['pipe', 'pipe', 'inherit', ...joins, status] as unknown as ['pipe', 'pipe', 'inherit'] },
  )
  closeSync(status)
  const init = await initOf(`${dir}/status`, child)
  if (options.nproc !== undefined) await setProcessLimit(init, { nproc: options.nproc })
  options.attach?.(init)
  child.stdin.write('x')
  await child.stdin.end()
  const text = new Response(child.stdout).text()
  const ended = child.exited.then(async code => {
    rmSync(dir, { recursive: true, force: true })
    return { code, output: await text, ms: stopwatch.ms }
  })
  return { init, ended, kill: () => process.kill(init, 'SIGKILL') }
}

async function initOf(file: string, child: { readonly exitCode: number | null }): Promise<number> {
  for (let i = 0; i < 400; i++) {
    const found = /"child-pid": (\d+)/.exec(readFileSync(file, 'utf8'))
    if (found !== null) return Number(found[1])
    if (child.exitCode !== null) break
    await Bun.sleep(5)
  }
  throw new Error('bubblewrap did not start')
}

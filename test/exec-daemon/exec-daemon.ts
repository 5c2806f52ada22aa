/** A real exec daemon on a socket of the test, and the output of its commands. */
import { dlopen, FFIType, ptr } from 'bun:ffi'
import { closeSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecEnding, ExecOrder, Execution } from '../../src/backend/backend.ts'
import { DaemonLink } from '../../src/backend/daemon-link.ts'
import { adoptDaemonSocket } from '../../src/backend/daemon-socket.ts'
import type { DaemonSetup } from '../../src/protocol/exec-order.ts'
import { DAEMON_MODE } from '../../src/protocol/guest-paths.ts'

const ROOT = join(import.meta.dir, '../..')
/** pen from the source tree. */
const SOURCE = [process.execPath, join(ROOT, 'src/main.ts')]
/** pen as it runs in a sandbox; `npm run build` makes it. */
export const BINARY = join(ROOT, 'dist/pen')

const { socketpair } = dlopen('libc.so.6', {
  socketpair: { args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
}).symbols

/** Two ends of one stream. */
export function pair(): readonly [number, number] {
  const ends = new Int32Array(2)
  if (socketpair(1, 1 | 0o2000000, 0, ptr(ends)) !== 0) throw new Error('socketpair failed')
  return [ends[0] ?? -1, ends[1] ?? -1]
}

export const SETUP: DaemonSetup = {
  user: undefined,
  userDirectories: [],
  env: [
    { name: 'AGENT_IN_SANDBOX', value: '1' },
    { name: 'PATH', value: '/usr/local/bin:/usr/bin:/bin' },
  ],
  seccomp: undefined,
  emptyBounding: false,
}

export interface RunningDaemon {
  readonly link: DaemonLink
  /** The process that was started: the exec daemon itself, unless a wrapper is in front of it. */
  readonly child: Bun.Subprocess
  run(order: Partial<ExecOrder> | string, act?: (execution: Execution) => void): Promise<Ran>
  end(): Promise<void>
}

export interface Ran {
  readonly ending: ExecEnding
  readonly stdout: string
  readonly stderr: string
}

/** `program` is pen, or a wrapper with pen behind it. Descriptor 3 belongs to the exec daemon. */
export function startDaemon(setup: DaemonSetup = SETUP, program: readonly string[] = SOURCE): RunningDaemon {
  const [ours, theirs] = pair()
  const child = Bun.spawn([...program, DAEMON_MODE, 'fd:3'], {
    stdio: ['ignore', 'ignore', 'inherit', theirs],
    env: { AGENT_IN_SANDBOX: '1', IMAGE: 'says so', LD_AUDIT: '' },
    cwd: '/',
  })
  closeSync(theirs)
  const link = new DaemonLink(adoptDaemonSocket(ours), setup)
  return {
    link,
    child,
    run: (order, act) => run(link, order, act),
    end: async () => {
      link.close()
      await child.exited
    },
  }
}

/** A string is a shell line. */
export const orderOf = (order: Partial<ExecOrder> | string): ExecOrder => ({
  cwd: '/',
  env: [],
  terminal: undefined,
  ...(typeof order === 'string' ? { argv: ['sh', '-c', order] } : { argv: [], ...order }),
})

export async function run(
  link: DaemonLink,
  order: Partial<ExecOrder> | string,
  act: (execution: Execution) => void = execution => execution.endInput(),
): Promise<Ran> {
  const said = { stdout: '', stderr: '' }
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  const execution = link.exec(orderOf(order), (stream, bytes) => {
    said[stream] += decoders[stream].decode(bytes, { stream: true })
    return undefined
  })
  act(execution)
  return { ending: await execution.ended, ...said }
}

/** Bytes of this process's own memory. */
export function proportionalSize(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1]) * 1024
}

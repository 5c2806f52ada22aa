/**
 * The exec daemon without namespaces. A supervise process is its parent, and kills everything below when the exec
 * daemon or pen ends. The exec daemon has the same user as its commands, which can kill it, and so the sandbox. pen
 * treats its reports as hostile.
 */
import { closeSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { pipe } from '../../base/kernel/descriptor.ts'
import { socketPair } from '../../base/kernel/socket.ts'
import { ownProgram } from '../../base/own-program.ts'
import { DAEMON_MODE } from '../../protocol/guest-paths.ts'
import type { ExecOrder, ExecOutput, Execution } from '../backend.ts'
import { DaemonLink } from '../daemon-link.ts'
import { adoptDaemonSocket } from '../daemon-socket.ts'
import { relayOutput } from '../process/exec-daemon.ts'
import type { ProcessLimits } from './gate/order.ts'
import { trackOrphans } from './gate/orphans.ts'
import { type SupervisedOptions, startSupervised } from './gate/supervised.ts'

export interface SoftDaemonOptions extends Omit<SupervisedOptions, 'stdio'> {
  /** For the exec daemon, and for each process that it starts. */
  readonly limits: ProcessLimits
  /** The whole environment of a command. */
  readonly variables: Readonly<Record<string, string>>
}

export interface SoftDaemon {
  /** All processes of the sandbox are below this one. */
  readonly pid: number
  readonly ready: Promise<void>
  exec(order: ExecOrder, output: ExecOutput): Execution
  signal(name: NodeJS.Signals): void
  kill(): void
  readonly ended: Promise<void>
}

export async function startSoftDaemon(options: SoftDaemonOptions): Promise<SoftDaemon> {
  const endOrphans = trackOrphans()
  const [ours, theirs] = socketPair()
  const [errors, errorWriter] = pipe()
  const supervised = startSupervised({ ...options, stdio: [theirs, 'ignore', errorWriter] })
  for (const fd of [theirs, errorWriter]) closeSync(fd)
  void relayOutput(errors)
  const [file, ...rest] = ownProgram()
  const { limits, variables } = options
  const env = { AGENT_IN_SANDBOX: '1' }
  supervised.begin({ file, argv: [file, ...rest, DAEMON_MODE, 'bare:0'], cwd: '/', env, limits })
  const link = new DaemonLink(adoptDaemonSocket(ours), {
    user: undefined,
    userDirectories: [],
    env: Object.entries(variables).map(([name, value]) => ({ name, value })),
    seccomp: undefined,
    emptyBounding: false,
  })
  const kill = (): void => {
    link.close()
    supervised.kill()
  }
  const pid = await supervised.started
  if (pid === undefined) {
    kill()
    throw new PenError('BACKEND', {
      what: 'the exec daemon of the soft sandbox could not be started',
      hint: 'check that the owner of the project may run pen itself',
    })
  }
  const ended = supervised.ended.then(async () => {
    link.close()
    await endOrphans()
  })
  return {
    pid,
    ready: link.ready,
    exec: (order, output) => withOrphans(link.exec(order, output)),
    signal: name => link.signal(name),
    kill,
    ended,
  }
}

/** A command's end also ends the processes that it left behind. Nothing else contains them here. */
function withOrphans(execution: Execution): Execution {
  void execution.ended.then(({ kind }) => {
    if (kind === 'exit' || kind === 'signal') execution.kill()
  })
  return execution
}

/**
 * The exec daemon without walls around it: a supervisor is its parent, and ends everything below when the exec daemon or the supervisor is gone. The
 * daemon has the same user as its commands, which can end it, and with it the sandbox; the supervisor believes none of its words.
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
import { relayWords } from '../process/exec-daemon.ts'
import { keepLeftovers } from './gate/leftovers.ts'
import type { ProcessLimits } from './gate/order.ts'
import { type SupervisedOptions, startSupervised } from './gate/supervised.ts'

export interface SoftDaemonOptions extends Omit<SupervisedOptions, 'stdio'> {
  /** Of the exec daemon, and of each process that it starts. */
  readonly limits: ProcessLimits
  /** All that a command has. */
  readonly variables: Readonly<Record<string, string>>
}

export interface SoftDaemon {
  /** Everything that runs is below it. */
  readonly pid: number
  readonly ready: Promise<void>
  exec(order: ExecOrder, output: ExecOutput): Execution
  signal(name: NodeJS.Signals): void
  kill(): void
  readonly ended: Promise<void>
}

export async function startSoftDaemon(options: SoftDaemonOptions): Promise<SoftDaemon> {
  const endLeftovers = keepLeftovers()
  const [ours, theirs] = socketPair()
  const [said, says] = pipe()
  const supervised = startSupervised({ ...options, stdio: [theirs, 'ignore', says] })
  for (const fd of [theirs, says]) closeSync(fd)
  void relayWords(said)
  const [file, ...rest] = ownProgram()
  const { limits, variables } = options
  const env = { AGENT_IN_SANDBOX: '1' }
  supervised.begin({ file, argv: [file, ...rest, DAEMON_MODE, 'bare:0'], cwd: '/', env, limits })
  const link = new DaemonLink(adoptDaemonSocket(ours), {
    user: undefined,
    given: [],
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
    await endLeftovers()
  })
  return {
    pid,
    ready: link.ready,
    exec: (order, output) => withLeftovers(link.exec(order, output)),
    signal: name => link.signal(name),
    kill,
    ended,
  }
}

/** A command takes along what it leaves: here nothing else holds that together. */
function withLeftovers(execution: Execution): Execution {
  void execution.ended.then(({ kind }) => {
    if (kind === 'exit' || kind === 'signal') execution.kill()
  })
  return execution
}

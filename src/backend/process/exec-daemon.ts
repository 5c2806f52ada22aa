/**
 * A process sandbox that stays. Its first program is the exec daemon, which starts commands for the supervisor and ends
 * with it. The sandbox gets the program and its socket by descriptor, and sees no file of either.
 *
 * All processes inside have one user, so a command can kill the exec daemon, and so the sandbox. A command gains
 * nothing else: the supervisor treats every report of the exec daemon as hostile.
 */
import { closeSync, openSync } from 'node:fs'
import { pipe } from '../../base/kernel/descriptor.ts'
import { socketPair } from '../../base/kernel/socket.ts'
import { readProgramHead } from '../../base/program-head.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { Plan } from '../../plan/plan.ts'
import { FILE_MODE } from '../../protocol/file-order.ts'
import { DAEMON_MODE, PEN_INSIDE, PEN_ITSELF } from '../../protocol/guest-paths.ts'
import type { ExecOrder, Execution, Running, StartOptions } from '../backend.ts'
import { DaemonLink } from '../daemon-link.ts'
import { adoptDaemonSocket } from '../daemon-socket.ts'

export interface ProcessDaemon {
  /** Passed to the guard, in this order. */
  readonly fds: readonly number[]
  argv(firstFd: number): readonly string[]
  /** The whole environment of the exec daemon. */
  readonly env: Plan['env']
  /** The stdin, stdout and stderr of the exec daemon. Commands have their own. */
  readonly stdio: StartOptions['stdio']
  /** Closes pen's copies, after the guard has its own. */
  closeCopies(): void
  /** `signal` goes to every running command. */
  readonly commands: Required<Pick<Running, 'exec' | 'ready' | 'signal'>>
}

/** Enough for error messages of bubblewrap and the exec daemon. Any further output is dropped. */
const MAX_OUTPUT = 16 * 1024

/** pen's binary, which the exec daemon starts for a command, and its loader. */
function ownExecutables(): string[] {
  const head = readProgramHead(process.execPath)
  return [PEN_ITSELF, ...(head.kind === 'native' && head.loader !== undefined ? [head.loader] : [])]
}

export function startExecDaemon(plan: Plan, undo: UndoStack): ProcessDaemon {
  const program = openSync(process.execPath, 'r')
  const devNull = openSync('/dev/null', 'r+')
  const [ours, theirs] = socketPair()
  const [errors, errorWriter] = pipe()
  const copies = [theirs, errorWriter, devNull]
  const closeCopies = (): void => {
    for (const fd of copies.splice(0)) closeSync(fd)
  }
  undo.push('the exec daemon', () => {
    closeCopies()
    closeSync(program)
  })
  void relayOutput(errors)
  const link = new DaemonLink(adoptDaemonSocket(ours), {
    user: undefined,
    userDirectories: [],
    env: plan.env.map(({ name, value }) => ({ name, value })),
    seccomp: undefined,
    emptyBounding: false,
    ...(plan.listedExec && { executable: [...plan.executable, ...ownExecutables()] }),
  })
  undo.push('the exec daemon’s socket', () => link.close())
  const running = new Set<Execution>()
  return {
    fds: [program, theirs],
    argv: first => [`/proc/self/fd/${first}`, DAEMON_MODE, `fd:${first + 1}`],
    env: plan.env.filter(({ name }) => name === 'AGENT_IN_SANDBOX'),
    stdio: [devNull, devNull, errorWriter],
    closeCopies,
    commands: {
      ready: link.ready,
      exec: (order, output) => {
        const execution = link.exec(withOwnPath(order), output)
        running.add(execution)
        void execution.ended.finally(() => running.delete(execution)).catch(() => undefined)
        return execution
      },
      signal: name => {
        for (const execution of running) execution.signal(name)
      },
    },
  }
}

/** A process sandbox may show no file of pen, so the exec daemon starts its own binary for the file tool. */
const withOwnPath = (order: ExecOrder): ExecOrder =>
  order.argv[0] === PEN_INSIDE && order.argv[1] === FILE_MODE
    ? { ...order, argv: [PEN_ITSELF, ...order.argv.slice(1)] }
    : order

/**
 * Copies output to the supervisor's log. It comes from inside, so it is hostile: it is bounded, and never printed as it
 * is.
 */
export async function relayOutput(fd: number): Promise<void> {
  let left = MAX_OUTPUT
  try {
    for await (const bytes of Bun.file(fd).stream() as AsyncIterable<Uint8Array>) {
      if (left > 0) process.stderr.write(Buffer.from(bytes.subarray(0, left)))
      left -= bytes.length
    }
  } catch {
    // The sandbox has ended.
  }
}

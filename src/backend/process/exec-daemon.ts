/**
 * A process sandbox that stays. Its first program is the exec daemon, which starts commands for the supervisor and ends
 * with it. The sandbox gets the program and its socket by descriptor, and sees no file of either.
 *
 * All processes inside have one user, so a command can kill the exec daemon, and so the sandbox. A command gains
 * nothing else: the supervisor treats every report of the exec daemon as hostile.
 */
import { closeSync, openSync } from 'node:fs'
import { readProgramHead } from '../../base/program-head.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { Plan } from '../../plan/plan.ts'
import { FILE_MODE } from '../../protocol/file-order.ts'
import { DAEMON_MODE, PEN_INSIDE, PEN_ITSELF, SFTP_MODE } from '../../protocol/guest-paths.ts'
import type { ExecOrder, Running, StartOptions } from '../backend.ts'
import { linkToOwnDaemon } from '../daemon-link.ts'

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

/** The loader of pen's binary, which the exec daemon starts for a command. */
export function ownLoader(): string[] {
  const head = readProgramHead(process.execPath)
  return head.kind === 'native' && head.loader !== undefined ? [head.loader] : []
}

export function startExecDaemon(plan: Plan, undo: UndoStack): ProcessDaemon {
  const program = openSync(process.execPath, 'r')
  const devNull = openSync('/dev/null', 'r+')
  const { link, fds } = linkToOwnDaemon({
    env: plan.env.map(({ name, value }) => ({ name, value })),
    ...(plan.listedExec && { executable: [...plan.executable, PEN_ITSELF, ...ownLoader()] }),
  })
  const copies = [fds.socket, fds.errors, devNull]
  const closeCopies = (): void => {
    for (const fd of copies.splice(0)) closeSync(fd)
  }
  undo.push('the exec daemon', () => {
    link.close()
    closeCopies()
    closeSync(program)
  })
  return {
    fds: [program, fds.socket],
    argv: first => [`/proc/self/fd/${first}`, DAEMON_MODE, `fd:${first + 1}`],
    env: plan.env.filter(({ name }) => name === 'AGENT_IN_SANDBOX'),
    stdio: [devNull, devNull, fds.errors],
    closeCopies,
    commands: {
      ready: link.ready,
      exec: (order, output) => link.exec(withOwnPath(order), output),
      signal: name => link.signal(name),
    },
  }
}

/** A process sandbox may show no file of pen, so the exec daemon starts its own binary for pen's file servers. */
const withOwnPath = (order: ExecOrder): ExecOrder =>
  order.argv[0] === PEN_INSIDE && [FILE_MODE, SFTP_MODE].includes(order.argv[1] ?? '')
    ? { ...order, argv: [PEN_ITSELF, ...order.argv.slice(1)] }
    : order

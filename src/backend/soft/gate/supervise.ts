/**
 * The parent process of a command without namespaces. On Linux it adopts everything that the command leaves behind,
 * also after a double fork or a new session. When pen dies, everything below it is killed. It has none of the command's
 * variables, and only two pipes of pen.
 */
import { writeSync } from 'node:fs'
import { EXIT, type ExitCode } from '../../../base/error.ts'
import { findTool } from '../../../base/find-tool.ts'
import { adoptOrphans, endBelow, signal } from '../../../base/kernel/end-processes.ts'
import { reapOrphans } from '../../../base/kernel/reap-orphans.ts'
import { startProgram } from '../../../base/start-program.ts'
import { linesOf, parseOrder, type SuperviseOrder, type SuperviseReport } from './order.ts'
import { setLimits, setNoNewPrivileges } from './own-process.ts'

const ORDERS = 3
const REPORTS = 4
/** Cgroups to join: open files, here and in the command until it starts. */
const FIRST_JOIN = 5
const FIRST_CHILD = 3

/** pen sends one line. The end of the pipe means that pen has died, or wants to end the command. */
export async function supervise(): Promise<ExitCode> {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(name, () => undefined)
  const orders = linesOf(ORDERS)
  const first = await orders.next()
  const order = first.done === true ? undefined : parseOrder(first.value)
  if (order === undefined) return EXIT.pen
  adoptOrphans()
  setNoNewPrivileges()
  setLimits(order.limits)
  const child = start(order)
  if (child === undefined) return EXIT.pen
  report({ kind: 'started', pid: child.pid })
  reapOrphans(pid => pid === child.pid)
  const gone = orders.next().then(() => 'gone' as const)
  await Promise.race([child.exited, gone])
  const survivors = await endAll(child.pid)
  report({
    kind: 'ended',
    code: child.exitCode,
    signal: child.signalCode as NodeJS.Signals | null,
    survivors,
  })
  return EXIT.ok
}

function start(order: SuperviseOrder): Bun.Subprocess | undefined {
  const [name = '', ...args] = order.argv
  const joins = Array.from({ length: order.joins }, (_, i) => FIRST_JOIN + i)
  const command = [order.file, ...args]
  try {
    return startProgram(joins.length === 0 ? command : joined(joins, command), {
      ...(joins.length === 0 && { argv0: name }),
      cwd: order.cwd,
      env: order.env,
      stdio: ['inherit', 'inherit', 'inherit', ...joins],
      // A new session, so that one signal reaches every process that stays in it.
      detached: true,
    })
  } catch (error) {
    report({
      kind: 'not-started',
      errno: error instanceof Error && 'code' in error ? String(error.code) : '',
    })
    return undefined
  }
}

/** Only the command joins the cgroups. The supervise process would use up their room. */
function joined(joins: readonly number[], command: readonly string[]): string[] {
  const shell = findTool('sh')
  if (shell === undefined) throw Object.assign(new Error('there is no shell'), { code: 'ENOENT' })
  const numbers = joins.map((_, i) => FIRST_CHILD + i)
  const script = [
    ...numbers.map(fd => `echo 0 >&${fd} || exit 125; exec ${fd}>&-`),
    'unset PWD OLDPWD',
    'exec "$@"',
  ]
  return [shell, '-c', script.join('\n'), 'pen', ...command]
}

async function endAll(leader: number): Promise<number> {
  signal(-leader, 'SIGKILL')
  return await endBelow(process.pid)
}

function report(message: SuperviseReport): void {
  try {
    writeSync(REPORTS, `${JSON.stringify(message)}\n`)
  } catch {
    // pen has died. No reader is left.
  }
}

/**
 * A soft sandbox that stays. Every request of a client goes through the gate. The gate itself opens files, and the exec
 * daemon starts a program if the policy lists it. pen cannot tell who asks, so every request is judged as the agent's.
 *
 * A supervise process is the parent of the exec daemon, and kills everything below when the exec daemon or pen ends. The
 * exec daemon has the same user as its commands, which can kill it, and so the sandbox. pen treats its reports as
 * hostile.
 */
import { closeSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { ownProgram } from '../../base/own-program.ts'
import type { Plan } from '../../plan/plan.ts'
import type { Policy } from '../../policy/policy.ts'
import { FILE_MODE, readFileOrder } from '../../protocol/file-order.ts'
import { DAEMON_MODE, PEN_INSIDE, SHELL_INSIDE } from '../../protocol/guest-paths.ts'
import type { ExecOrder, ExecOutput, Execution, Running, StartOptions } from '../backend.ts'
import { linkToOwnDaemon } from '../daemon-link.ts'
import { FileCall } from './file-call.ts'
import { limitsOf } from './gate/exec.ts'
import { ActionFailed, Gate, Refused } from './gate/gate.ts'
import { startSupervised } from './gate/supervised.ts'
import type { PrivateDirectories } from './private-directories.ts'

/** Room for other processes of the user, who may start some while the sandbox runs for hours. */
const OTHER_PROCESSES = 2048

/** Starts a command below the exec daemon. */
export type Exec = NonNullable<Running['exec']>

export async function startExecDaemon(
  plan: Plan,
  { placement, rules }: StartOptions,
  places: PrivateDirectories,
  env: Readonly<Record<string, string>>,
): Promise<Running> {
  const { link, fds } = linkToOwnDaemon({
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
  })
  const supervised = startSupervised({
    stdio: [fds.socket, 'ignore', fds.errors],
    identity: plan.runAs === 'self' ? undefined : plan.runAs,
    placement,
  })
  for (const fd of [fds.socket, fds.errors]) closeSync(fd)
  const [file, ...rest] = ownProgram()
  supervised.begin({
    file,
    argv: [file, ...rest, DAEMON_MODE, 'bare:0'],
    cwd: '/',
    env: { AGENT_IN_SANDBOX: '1' },
    limits: limitsOf(rules.policy, plan.runAs, plan.limits.wall, OTHER_PROCESSES),
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
  let gate: Gate | undefined
  const exec: Exec = (order, output) => withOrphans(link.exec(order, output))
  return {
    sharesHost: true,
    judges: true,
    begin: audit => {
      const { policy, sandbox, world, grants } = rules
      const judged = { policy: () => policy, sandbox, audit, world, grants: grants(audit) }
      gate = new Gate({ ...judged, env, runAs: plan.runAs })
    },
    ready: link.ready,
    exec: (order, output) =>
      gate === undefined ? notStarted('EAGAIN') : perform(gate, exec, named(order, rules.policy), output),
    ended: supervised.ended.then(() => {
      link.close()
      places.remove()
      return { kind: 'killed' as const }
    }),
    initPid: () => pid,
    kill,
    signal: name => link.signal(name),
  }
}

/** A command's end also ends the processes that it left behind. Nothing else contains them here. */
function withOrphans(execution: Execution): Execution {
  void execution.ended.then(({ kind }) => {
    if (kind === 'exit' || kind === 'signal') execution.kill()
  })
  return execution
}

/** Without a command it is a shell: bash, unless only sh is listed. */
function named(order: ExecOrder, { tools }: Policy): ExecOrder {
  const [first = SHELL_INSIDE, ...rest] = order.argv
  if (first !== SHELL_INSIDE) return order
  const lacksBash = tools.allow !== 'shown' && !tools.allow.includes('bash')
  return { ...order, argv: [lacksBash ? 'sh' : 'bash', ...rest] }
}

function perform(gate: Gate, exec: Exec, order: ExecOrder, output: ExecOutput): Execution {
  const [program, mode, words = ''] = order.argv
  if (program === PEN_INSIDE && mode === FILE_MODE && order.argv.length === 3)
    return new FileCall(gate, exec, readFileOrder(words), output)
  try {
    const env = Object.fromEntries(order.env.map(({ name, value }) => [name, value]))
    const admitted = gate.exec(order.argv, { cwd: order.cwd, env })
    return exec(
      {
        ...order,
        argv: admitted.argv,
        cwd: admitted.cwd,
        env: Object.entries(admitted.env).map(([name, value]) => ({ name, value })),
      },
      output,
    )
  } catch (error) {
    if (error instanceof Refused)
      return notStarted(error.reason === 'not-found' ? 'ENOENT' : 'EACCES', describe(order.argv[0], error))
    if (error instanceof ActionFailed) return notStarted(error.errno, `${order.cwd}: ${error.message}`)
    throw error
  }
}

const describe = (program = '', { message, hint }: Refused): string =>
  `${program}: ${message}${hint === undefined ? '' : ` (${hint})`}`

/** A command that did not start. */
const notStarted = (errno: string, reason = ''): Execution => ({
  write: async () => undefined,
  endInput: ignore,
  resize: ignore,
  signal: ignore,
  kill: ignore,
  ended: Promise.resolve({ kind: 'not-started', errno, reason }),
})
const ignore = (): void => undefined

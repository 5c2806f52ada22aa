/**
 * A soft sandbox that stays. Every request of a client goes through the gate. The gate itself opens files, and the exec
 * daemon starts a program if the policy lists it. pen cannot tell who asks, so every request is judged as the agent's.
 */
import type { Plan } from '../../plan/plan.ts'
import type { Policy } from '../../policy/policy.ts'
import { FILE_MODE, readFileOrder } from '../../protocol/file-order.ts'
import { PEN_INSIDE } from '../../protocol/guest-paths.ts'
import type { ExecOrder, ExecOutput, Execution, Running, StartOptions } from '../backend.ts'
import { FileCall } from './file-call.ts'
import { limitsOf } from './gate/exec.ts'
import { ActionFailed, Gate, Refused } from './gate/gate.ts'
import type { PrivateDirectories } from './private-directories.ts'
import { type SoftDaemon, startSoftDaemon } from './soft-daemon.ts'

/** Room for other processes of the user, who may start some while the sandbox runs for hours. */
const OTHER_PROCESSES = 2048

export async function startExecDaemon(
  plan: Plan,
  { placement, rules }: StartOptions,
  places: PrivateDirectories,
  env: Readonly<Record<string, string>>,
): Promise<Running> {
  const { policy, world, grants } = rules
  const daemon = await startSoftDaemon({
    identity: plan.runAs === 'self' ? undefined : plan.runAs,
    wrap: placement.wrap,
    env: placement.env,
    joinFds: placement.joinFds,
    variables: env,
    limits: limitsOf(policy, plan.runAs, plan.limits.wall, OTHER_PROCESSES),
  })
  let gate: Gate | undefined
  return {
    sharesHost: true,
    judges: true,
    begin: audit => {
      gate = new Gate({ policy: () => policy, audit, world, grants: grants(audit), env, runAs: plan.runAs })
    },
    ready: daemon.ready,
    exec: (order, output) =>
      gate === undefined ? notStarted('EAGAIN') : perform(gate, daemon, named(order, policy), output),
    ended: daemon.ended.then(() => {
      places.remove()
      return { kind: 'killed' as const }
    }),
    initPid: () => daemon.pid,
    kill: daemon.kill,
    signal: daemon.signal,
  }
}

/** Without a command it is a shell: bash, unless only sh is listed. */
function named(order: ExecOrder, { tools }: Policy): ExecOrder {
  if (order.argv.length > 0) return order
  const lacksBash = tools.allow !== 'shown' && !tools.allow.includes('bash')
  return { ...order, argv: [lacksBash ? 'sh' : 'bash'] }
}

function perform(gate: Gate, daemon: SoftDaemon, order: ExecOrder, output: ExecOutput): Execution {
  const [program, mode, words = ''] = order.argv
  if (program === PEN_INSIDE && mode === FILE_MODE && order.argv.length === 3)
    return new FileCall(gate, daemon, readFileOrder(words), output)
  try {
    const env = Object.fromEntries(order.env.map(({ name, value }) => [name, value]))
    const admitted = gate.exec(order.argv, { cwd: order.cwd, env })
    return daemon.exec(
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

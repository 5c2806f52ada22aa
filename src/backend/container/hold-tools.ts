/**
 * `tools` of the policy in a container. Which programs an image has is only known when it stands there, with the exec daemon in it and
 * nothing else: then those that the policy does not list are covered and, where only listed ones may run, every mount but the image's
 * own becomes noexec. What is left to execute is told to the exec daemon, which locks itself and all that it starts (Landlock).
 */
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import type { Plan } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { Policy } from '../../policy/policy.ts'
import { PEN_INSIDE } from '../../protocol/guest-paths.ts'
import type { NamespaceMounts } from '../mounts/live-mounts.ts'
import { WHATEVER_IS_THERE } from '../mounts/meant.ts'
import type { MountOrder } from '../mounts/mount-orders.ts'
import { restrictsTools } from '../programs/survey.ts'
import type { Bind } from './arguments.ts'
import { DAEMON_PLACE } from './guest-program.ts'
import { mountPoints } from './in-place.ts'

export interface HeldTools {
  /** All that may be executed; undefined where anything may. */
  readonly executable: readonly string[] | undefined
  readonly notes: readonly string[]
}

export interface ToolsToHold {
  readonly plan: Pick<Plan, 'listedExec' | 'env'>
  readonly tools: Policy['tools']
  readonly init: number
  readonly mounts: NamespaceMounts
  /** Of the image. */
  readonly path: string
  /** What the policy mounts. */
  readonly binds: readonly Pick<Bind, 'at'>[]
  /** All that is mounted by the engine, these among it. */
  readonly targets: readonly string[]
  /** When the exec daemon runs: until then the runtime may mount more, as it does to mask parts of /proc. */
  readonly daemon: Promise<unknown>
  /** That pen's binary names. */
  readonly loader: string | undefined
}

/** Of the kernel and the engine. */
const SPECIAL = ['/dev', '/proc', '/sys']

export async function holdTools(held: ToolsToHold): Promise<HeldTools> {
  const { plan, tools, mounts, loader } = held
  if (!plan.listedExec && !restrictsTools(tools)) return { executable: undefined, notes: [] }
  if (plan.listedExec) await held.daemon
  const path = plan.env.find(({ name }) => name === 'PATH')?.value ?? held.path
  const order = {
    tools,
    path: path.split(':').filter(directory => directory.startsWith('/')),
    foreign: [...SPECIAL, ...held.targets],
    kept: held.binds.map(({ at }) => at),
    loader,
  }
  const answer = await mounts.hidePrograms(order, plan.listedExec ? noexec(held.init) : [])
  if ('odd' in answer)
    throw new PenError('IMAGE', {
      what: `the programs of the image cannot be told apart, which "tools" needs: ${printable(answer.odd, 400)}`,
      hint: 'build it from another base, or without "tools" in the policy',
    })
  if ('failed' in answer)
    throw new PenError('BACKEND', {
      what: `the tools of the policy cannot be held in the container: ${printable(answer.failed, 400)}`,
      hint: '`pen plan` shows what is mounted and why',
    })
  const executable = plan.listedExec ? [...answer.executable, PEN_INSIDE] : undefined
  return { executable, notes: answer.notes }
}

/** Each with all that is mounted in it. Not the image's own tree, which is read-only, and not what the exec daemon runs from. */
function noexec(init: number): MountOrder[] {
  const points = [...new Set(mountPoints(init))].filter(path => path !== '/' && !isWithin(path, DAEMON_PLACE))
  const outermost = points.filter(path => !points.some(other => other !== path && isWithin(path, other)))
  return [
    ...outermost.map(path => ({ ...WHATEVER_IS_THERE, how: 'noexec', below: true, path }) as const),
    // pen itself, for commands.
    { ...WHATEVER_IS_THERE, how: 'exec', path: PEN_INSIDE },
  ]
}

/** Of an exec daemon that ended when it was to lock itself. What it says itself nobody hears. */
export const notLocked = (cause: unknown): PenError =>
  new PenError('BACKEND', {
    what: 'the exec daemon inside the container ended before it was ready, where tools.exec is "listed"',
    hint: 'the engine’s own filter of system calls may refuse Landlock, as older ones do: update it, or set tools.exec to "any"',
    cause,
  })

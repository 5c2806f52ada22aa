/**
 * Enforces `tools` of the policy in a container. The programs of an image are known only when the container exists,
 * with the exec daemon as its only process. Programs that the policy does not list are then covered. When only listed
 * programs may run, every mount except the image's own becomes noexec. The exec daemon gets the list of what may
 * execute, and restricts itself and its commands by Landlock.
 */
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import type { Plan } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { Policy } from '../../policy/policy.ts'
import { PEN_INSIDE } from '../../protocol/guest-paths.ts'
import { ANY_FILE } from '../mounts/file-identity.ts'
import type { NamespaceMounts } from '../mounts/live-mounts.ts'
import type { MountOrder } from '../mounts/mount-orders.ts'
import { restrictsTools } from '../programs/survey.ts'
import type { Bind } from './arguments.ts'
import { DAEMON_DIRECTORY } from './guest-program.ts'
import { mountPoints } from './verify-mounts.ts'

export interface HeldTools {
  /** Everything that may be executed. Undefined when every program may. */
  readonly executable: readonly string[] | undefined
  readonly notes: readonly string[]
}

export interface ToolsToHold {
  readonly plan: Pick<Plan, 'listedExec' | 'env'>
  readonly tools: Policy['tools']
  readonly init: number
  readonly mounts: NamespaceMounts
  /** The PATH of the image. */
  readonly path: string
  /** The mounts of the policy. */
  readonly binds: readonly Pick<Bind, 'at'>[]
  /** All mounts of the engine, including `binds`. */
  readonly targets: readonly string[]
  /** Resolves when the exec daemon runs. Until then the runtime may add mounts, such as masks in /proc. */
  readonly daemon: Promise<unknown>
  /** The loader that pen's binary names. */
  readonly loader: string | undefined
}

/** Mounts of the kernel and the engine. */
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
      what: `"tools" needs to identify the programs of the image, and cannot: ${printable(answer.odd, 400)}`,
      hint: 'build it from another base, or without "tools" in the policy',
    })
  if ('failed' in answer)
    throw new PenError('BACKEND', {
      what: `the tools of the policy cannot be enforced in the container: ${printable(answer.failed, 400)}`,
      hint: '`pen plan` shows every mount and its reason',
    })
  const executable = plan.listedExec ? [...answer.executable, PEN_INSIDE] : undefined
  return { executable, notes: answer.notes }
}

/** Each with all mounts below it. Not the image's own tree, which is read-only, and not the exec daemon's directory. */
function noexec(init: number): MountOrder[] {
  const points = [...new Set(mountPoints(init))].filter(
    path => path !== '/' && !isWithin(path, DAEMON_DIRECTORY),
  )
  const outermost = points.filter(path => !points.some(other => other !== path && isWithin(path, other)))
  return [
    ...outermost.map(path => ({ ...ANY_FILE, how: 'noexec', below: true, path }) as const),
    // pen itself, for commands.
    { ...ANY_FILE, how: 'exec', path: PEN_INSIDE },
  ]
}

/** For an exec daemon that ended while it restricted itself. Its own message is lost. */
export const notLocked = (cause: unknown): PenError =>
  new PenError('BACKEND', {
    what: 'the exec daemon inside the container ended before it was ready, with tools.exec "listed"',
    hint: 'the engine’s seccomp profile may refuse Landlock, as old versions do: update the engine, or set tools.exec to "any"',
    cause,
  })

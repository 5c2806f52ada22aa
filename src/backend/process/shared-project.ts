/**
 * Mounts in a project in which another sandbox runs. Bubblewrap before 0.12 looks up by name where it mounts, follows a link there,
 * and makes what is missing. Another sandbox could put a link there at that moment, and so make a file anywhere on the host. So pen
 * makes these mounts itself, by descriptor, before the command begins. It costs a process, so most starts leave them to bubblewrap.
 */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { NamespaceMounts } from '../mounts/live-mounts.ts'
import type { MountOrder } from '../mounts/mount-orders.ts'
import { untilReady } from './listed.ts'

export interface SplitMounts {
  /** What is left to bubblewrap. */
  readonly plan: Plan
  /** In the order of the plan: a directory before what is in it. */
  readonly orders: readonly MountOrder[]
}

export function splitMounts(plan: Plan): SplitMounts {
  const orders: MountOrder[] = []
  const passable = plan.steps.filter(step => step.op === 'cover' && step.passable === true)
  const steps = plan.steps.filter(step => {
    const how = howBeneath(plan, step)
    // Bubblewrap makes the mount points in such a cover, in memory.
    if (how === undefined || passable.some(({ at }) => isWithin(step.at, at))) return true
    const stats = lstatSync(step.at, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined) throw changed(step.at)
    orders.push({ how, path: step.at, dev: String(stats.dev), ino: String(stats.ino) })
    return false
  })
  return { plan: { ...plan, steps }, orders }
}

/** Undefined for a mount that is not in the project, or shows something else there. */
function howBeneath(plan: Plan, step: Step): 'cover' | 'protect' | 'open' | undefined {
  const at: string = step.at
  if (at === plan.workspace || !isWithin(at, plan.workspace)) return undefined
  if (step.op === 'cover') return step.passable === true ? undefined : 'cover'
  if (step.op !== 'bind' || step.from !== at) return undefined
  return step.mode === 'ro' ? 'protect' : 'open'
}

/** Follows no link and makes nothing. A place that is another file by now stops the start. */
export async function mountBeneath(
  orders: readonly MountOrder[],
  mounts: NamespaceMounts,
  initPid: number,
): Promise<void> {
  if (!(await untilReady(mounts, initPid))) return
  const results = await mounts.carryOutDirectly(orders, [])
  const failed = results.findIndex(result => result !== 'held')
  const result = results[failed]
  if (result === undefined) return
  const path = orders[failed]?.path ?? ''
  if (typeof result !== 'object') throw changed(path)
  throw new PenError('BACKEND', {
    what: `${printable(path)} could not be held beside another sandbox of this project (${result.failed})`,
    hint: 'install util-linux (nsenter), or end the other sandbox: pen ls, then pen stop',
  })
}

const changed = (path: string): PenError =>
  new PenError('PATH_REFUSED', {
    what: 'a path in the workspace changed while pen started',
    at: path,
    hint: 'run it again',
  })

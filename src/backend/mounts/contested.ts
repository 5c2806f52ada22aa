/**
 * Names in the project that another running sandbox can replace while this one starts. Bubblewrap mounts by name: it follows a
 * link that appears there, and before 0.12 makes an absent target anywhere on the host. So pen mounts at such a name by
 * descriptor, when bubblewrap is done. A name that is a mount point in the other sandbox cannot be replaced there.
 */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { readOfProcess } from '../../base/kernel/kernel-file.ts'
import { inFileSystem, type MountEntry, mountOf, mountsHere, parseMounts } from '../../base/mount-table.ts'
import { dirname } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { mergedIn, type Plan, type PlannedLayer, type Step } from '../../plan/plan.ts'
import { type HostPath, isWithin } from '../../policy/files/path.ts'
import type { HoldResult } from '../backend.ts'
import { ANY_FILE } from './file-identity.ts'
import type { MountOrder } from './mount-orders.ts'
import { wayOnHost } from './mount-points.ts'

/** The steps that must be mounted later, in order, and how. `neighbours` are processes of the other sandboxes. */
export function contestedSteps(
  steps: readonly Step[],
  neighbours: readonly number[],
  { layer, workspace }: Pick<Plan, 'layer' | 'workspace'>,
): ReadonlyMap<Step, MountOrder> {
  const tables = neighbours.flatMap(pid => {
    const table = readOfProcess(pid, 'mountinfo', 'utf8')
    return table === undefined ? [] : [parseMounts(table)]
  })
  const late = new Map<Step, MountOrder>()
  if (tables.length === 0) return late
  const own = mountsHere()
  // Another sandbox replaces names in the project, which is below the merged tree.
  const mounts = layer === undefined ? steps : steps.map(step => onProject(step, layer, workspace))
  for (const step of steps) {
    const way = wayOnHost(step.at, mounts)
    const path = way.at(-1)
    if (path === undefined) continue
    const isInLate = [...late.values()].some(order => isWithin(step.at, order.path))
    if (isInLate || tables.some(table => way.some(name => canReplace(name, table, own))))
      late.set(step, orderFor(onProject(step, layer, workspace), path, layer))
  }
  return late
}

/** Whether the sandbox sees the directory of this host path, may write it, and has no mount at the name. */
function canReplace(path: string, theirs: readonly MountEntry[], own: readonly MountEntry[]): boolean {
  const dir = dirname(path)
  const [there, here] = [mountOf(dir, theirs), mountOf(dir, own)]
  if (there === undefined || here === undefined || there.options.has('ro')) return false
  return (
    there.device === here.device &&
    inFileSystem(dir, there) === inFileSystem(dir, here) &&
    theirs.every(({ point }) => point !== path)
  )
}

function onProject(step: Step, layer: PlannedLayer | undefined, workspace: HostPath): Step {
  const merged = layer === undefined ? undefined : mergedIn(layer.dir)
  if (merged === undefined || step.op !== 'bind' || !isWithin(step.from, merged)) return step
  return { ...step, from: `${workspace}${step.from.slice(merged.length)}` as HostPath }
}

function orderFor(step: Step, path: string, layer: PlannedLayer | undefined): MountOrder {
  const how =
    step.op === 'cover' && step.passable !== true
      ? 'cover'
      : step.op === 'bind' && step.from === path
        ? step.mode === 'ro'
          ? 'protect'
          : 'open'
        : undefined
  // Device and inode of a merged file are not the project's.
  if (how !== undefined && layer !== undefined) return { how, path: step.at, ...ANY_FILE }
  if (how !== undefined) {
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return { how, path: step.at, dev: String(stats?.dev), ino: String(stats?.ino) }
  }
  throw new PenError('PATH_REFUSED', {
    what: 'pen mounts something at this path, and another sandbox that runs now could replace it meanwhile',
    at: step.at,
    hint: 'end the other sandbox first: pen ls, then pen stop; or give both the same grants and mounts',
  })
}

/** Before the command starts. What differs from what pen looked at was replaced. */
export function requireHeld(orders: readonly MountOrder[], results: readonly HoldResult[]): void {
  for (const [i, { path: at }] of orders.entries()) {
    const result = results[i] ?? 'changed'
    if (result === 'changed')
      throw new PenError('PATH_REFUSED', {
        what: 'a path in the workspace changed while pen checked it',
        at,
        hint: 'run it again',
      })
    if (result !== 'held')
      throw new PenError('BACKEND', {
        what: `cannot mount in the sandbox: ${printable(result.failed)}`,
        at,
        hint: '`pen plan` shows every mount and its reason',
      })
  }
}

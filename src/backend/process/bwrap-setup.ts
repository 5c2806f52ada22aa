/**
 * Prepares what bubblewrap mounts, and its arguments. It is loaded after the guard has started, and runs beside it on
 * another core.
 */
import { chmodSync, closeSync, fstatSync, lstatSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from '../../base/posix-path.ts'
import { mergedIn, type Plan } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'
import { contestedSteps } from '../mounts/contested.ts'
import type { MountOrder } from '../mounts/mount-orders.ts'
import { isInLayer, type MountPoint, requireMountPoints } from '../mounts/mount-points.ts'
import { bwrapArguments, type Wiring } from './bwrap-arguments.ts'
import { type BindStep, etcView, isEtcStep } from './etc-view.ts'
import { openPinned } from './pinned.ts'
import type { Staging } from './staging.ts'

export { seccompFilter } from '../seccomp/filter.ts'
export { showInside } from './inside-view.ts'
export { removeMadePoints } from './made-mount-points.ts'

interface ArgumentOptions extends Omit<Wiring, 'source' | 'etc' | 'emptyFile'> {
  /** Only for root. It is left when everything is mounted. */
  readonly staging: Staging | undefined
  readonly cacheDir: string
  readonly env: Plan['env']
  /** Processes of other sandboxes of this user that run now. */
  readonly neighbours: readonly number[]
}

export interface BwrapOrders {
  /** The arguments of bubblewrap. */
  readonly args: string[]
  /** What pen mounts itself, when bubblewrap is done. */
  readonly late: readonly MountOrder[]
  /** Where it mounts in directories of the host. */
  readonly points: readonly MountPoint[]
}

/** Prepares the mount sources. */
export function prepareArguments(
  plan: Plan,
  { staging, cacheDir, env, neighbours, ...wiring }: ArgumentOptions,
): BwrapOrders {
  const mounts = plan.steps.filter(step => step.op !== 'link' && step.op !== 'seal' && !isEtcStep(step))
  // What is in a layer was looked at when it was opened, and nothing else writes there.
  const onHost = mounts.filter(step => !isInLayer(step, mounts, plan.layer))
  const points = requireMountPoints(
    onHost.map(({ at }) => at),
    mounts,
  )
  const late = contestedSteps(mounts, neighbours, plan)
  const grants = plan.steps.flatMap(step =>
    step.op === 'bind' && step.why !== 'system' && step.at.startsWith('/etc/') ? [step] : [],
  )
  const etc = etcView(plan.steps.filter(isEtcStep), cacheDir, grants)
  const empty = makeEmptyFile(cacheDir)
  const staged = staging === undefined ? undefined : stageAll(plan, staging, [etc, empty])
  staging?.leave()
  const source = (path: string): string => staged?.(path) ?? path
  const steps = plan.steps.filter(step => !late.has(step))
  const wired = { ...wiring, source, etc: source(etc), emptyFile: source(empty) }
  return { args: bwrapArguments({ ...plan, steps, env }, wired), late: [...late.values()], points }
}

function makeEmptyFile(cacheDir: string): string {
  const file = `${cacheDir}/nothing`
  const stat = lstatSync(file, { throwIfNoEntry: false })
  if (stat?.isFile() && stat.size === 0 && (stat.mode & 0o777) === 0) return file
  mkdirSync(cacheDir, { recursive: true, mode: 0o700 })
  writeFileSync(file, '', { mode: 0o000 })
  chmodSync(file, 0o000)
  return file
}

/** System paths need no staging, except a toolchain in root's home, which other users cannot enter. */
function isReachable({ why, at, from }: BindStep): boolean {
  if (why !== 'system') return false
  if (at.startsWith('/etc/')) return true
  const first = lstatSync(from).isDirectory() ? from : dirname(from)
  for (let above: string = first; above !== '/'; above = dirname(above))
    if ((lstatSync(above).mode & 0o001) === 0) return false
  return true
}

/** Stages every tree that the sandbox's uid cannot reach. Files of root are mapped to that uid. */
function stageAll(
  plan: Plan,
  staging: Staging,
  extra: readonly string[],
): (path: string) => string | undefined {
  const roots = new Map<string, string>()
  const mapped = new Map<string, boolean>()
  const merged = plan.layer?.kind === 'overlay' ? mergedIn(plan.layer.dir) : undefined
  const sources = plan.steps.flatMap(step =>
    step.op === 'bind' && !isReachable(step) && !(merged && isWithin(step.from, merged))
      ? [step.from as string]
      : [],
  )
  if (merged !== undefined && plan.layer !== undefined) {
    const map = lstatSync(plan.workspace).uid === 0
    roots.set(merged, staging.stageLayer(plan.layer.dir, plan.workspace, map))
  }
  const own = new Map<string, string>()
  for (const path of [...sources.sort((a, b) => a.length - b.length), ...extra]) {
    const inside = [...roots.keys()].find(root => isWithin(path, root))
    if (inside === undefined) {
      const stat = lstatSync(path)
      mapped.set(path, stat.uid === 0)
      roots.set(path, staging.stage(path, stat.isDirectory() ? 'directory' : 'file', stat.uid === 0))
    } else if (path !== inside && !own.has(path)) {
      // By descriptor, as for an ordinary user: another sandbox of this project could swap the path.
      const fd = openPinned(path)
      const kind = fstatSync(fd).isDirectory() ? 'directory' : 'file'
      own.set(path, staging.stage(fd, kind, mapped.get(inside) === true))
      closeSync(fd)
    }
  }
  staging.show()
  return path => {
    const root = [...roots.keys()].find(top => isWithin(path, top))
    return own.get(path) ?? (root === undefined ? undefined : `${roots.get(root)}${path.slice(root.length)}`)
  }
}

/**
 * Which mounts of a plan can be made in a merged tree. Earlier runs wrote it, and bubblewrap follows links at a mount point. So each mount
 * point is looked at by descriptor first. The lock keeps every other writer of the layer out.
 */
import { closeSync, constants, lstatSync, openSync } from 'node:fs'
import { onHost } from '../backend/mounts/mount-points.ts'
import { at, ENTER, type OpenStep, openItself, walk, withAccess } from '../base/beneath/beneath.ts'
import { absent, lookAt } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { O_PATH } from '../base/kernel/descriptor.ts'
import { printable } from '../base/printable.ts'
import { mergedIn, type Plan, type PlannedLayer, type Step } from '../plan/plan.ts'
import { isWithin } from '../policy/files/path.ts'
import { isOpaque, isWhiteout } from './overlay-marks.ts'

/** What the sandbox would see. `project`: what the project has. `hidden`: not that, and nothing in its place. */
type Shown = 'project' | 'hidden' | 'file' | 'directory' | 'other'

/**
 * Without the steps that keep the sandbox from a file of the project which its layer hides anyway. Throws for a mount that it needs.
 */
export function mountableSteps(plan: Plan, layer: PlannedLayer): readonly Step[] {
  const { workspace } = plan
  const merged = mergedIn(layer.dir)
  const top = layer.kind === 'overlay' ? `${layer.dir}/upper` : merged
  const kept: Step[] = []
  for (const step of plan.steps) {
    // A part of the merged tree that is granted by itself.
    const from =
      step.op === 'bind' && step.from !== merged && isWithin(step.from, merged) ? step.from : undefined
    const source = from === undefined ? undefined : shownAt(from)
    if (source === 'hidden' || source === 'other') throw notMountable(step.at)
    const point = onHost(step.at, kept)
    if (point === undefined || point === merged || !isWithin(point, merged)) {
      kept.push(step)
      continue
    }
    const shown = shownAt(point)
    if (shown === 'project' || shown === (source ?? kindOf(step))) kept.push(step)
    else if (!isOnlyHiding(step)) throw notMountable(step.at)
  }
  return kept

  function shownAt(path: string): Shown {
    const below = path.slice(merged.length + 1)
    const shown = look(top, below.split('/'), layer.kind)
    return shown === 'project' && lookAt(`${workspace}/${below}`) === undefined ? 'hidden' : shown
  }
}

/** A denied or protected file of the host's: it is safe where the sandbox does not see it. */
const isOnlyHiding = (step: Step): boolean =>
  step.op === 'cover' || (step.op === 'bind' && step.mode === 'ro')

function kindOf(step: Step): Shown {
  if (step.op === 'cover') return step.kind
  // The sandbox's own git directory is made later.
  const isFile =
    step.op === 'bind' && lstatSync(step.from, { throwIfNoEntry: false })?.isDirectory() === false
  return isFile ? 'file' : 'directory'
}

function look(top: string, names: readonly string[], kind: PlannedLayer['kind']): Shown {
  let isHidden = kind === 'copy'
  const open: OpenStep = (parent, name) => {
    isHidden ||= isOpaque(parent)
    return withAccess(parent, ENTER, () => {
      try {
        return openItself(at(parent, name))
      } catch (error) {
        return absent(error, at(parent, name))
      }
    })
  }
  const fd = openSync(top, O_PATH | constants.O_DIRECTORY)
  try {
    const shown = walk(fd, names, open, ({ stats, depth }): Shown => {
      if (isWhiteout(stats) || depth < names.length) return 'hidden'
      return stats.isDirectory() ? 'directory' : stats.isFile() ? 'file' : 'other'
    })
    return shown ?? (isHidden ? 'hidden' : 'project')
  } finally {
    closeSync(fd)
  }
}

const notMountable = (path: string): PenError =>
  new PenError('PATH_REFUSED', {
    what: `pen mounts something at ${printable(path, 1024)}, and the review layer has something else there, or removed it`,
    at: path,
    hint: 'pen diff shows it; pen accept or pen discard ends the layer',
  })

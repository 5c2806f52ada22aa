/**
 * Splits a plan's file tree for a container: what the engine mounts, and what pen holds inside that before anything
 * runs. The engine works by path. Inside the project pen trusts no path, and works by descriptor (see verify-mounts.ts).
 * Pure.
 */
import { posix } from 'node:path'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { mergedIn, type Plan } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { Bind, Scratch } from './arguments.ts'

export interface PlacedHold {
  readonly how: 'protect' | 'pin' | 'open' | 'cover'
  readonly at: string
  /** The path of the same file on the host, or in the merged tree of a review layer. */
  readonly from: string
  /** For a covered directory: the grants below it, which stay visible. */
  readonly shows?: readonly Shown[]
}

interface Shown extends Bind {
  /** It has a mount of its own, with its mode. */
  readonly isMounted: boolean
}

export interface PlanMounts {
  readonly scratch: readonly Scratch[]
  readonly binds: readonly Bind[]
  /** With a review layer: the parts of its merged tree, and what is mounted in them. pen mounts these, in order. */
  readonly layered: readonly Bind[]
  /** The merged tree. Its files have no device and inode on the host. */
  readonly merged: string | undefined
  /** In order: a later hold is deeper, or covers an earlier one. */
  readonly holds: readonly PlacedHold[]
  readonly files: readonly { readonly at: string; readonly text: string }[]
  /** Directories that the engine makes in private scratch as parents of a mount. They must belong to the user. */
  readonly userDirectories: readonly string[]
}

export function planMounts({
  steps,
  layer,
  workspace,
}: Pick<Plan, 'steps' | 'layer' | 'workspace'>): PlanMounts {
  const merged = layer?.kind === 'overlay' ? mergedIn(layer.dir) : undefined
  const scratch: Scratch[] = []
  const binds: Bind[] = []
  const layered: Bind[] = []
  const holds: PlacedHold[] = []
  const files: { at: string; text: string }[] = []
  const placed: Bind[] = []
  const covers: { readonly at: string; readonly shows: Shown[] }[] = []
  const isLayered = ({ from, at }: Bind): boolean =>
    (merged !== undefined && isWithin(from, merged)) || layered.some(bind => isWithin(at, bind.at))
  const unmerged = (path: string): string | undefined =>
    merged !== undefined && isWithin(path, merged) ? `${workspace}${path.slice(merged.length)}` : undefined
  for (const step of steps) {
    switch (step.op) {
      case 'tmpfs':
        scratch.push({ at: step.at, size: step.size, mode: step.mode })
        break
      case 'file':
        files.push({ at: step.at, text: step.text })
        break
      case 'bind': {
        const { at, mode } = step
        const around = innermost(placed, at)
        const cover = innermost(covers, at)
        const shown = around === undefined ? undefined : throughBind(around, at)
        // A protected file of the project is protected in the merged tree.
        const from = mode === 'ro' && shown !== undefined && step.from === unmerged(shown) ? shown : step.from
        const bind: Bind = { from, at, mode }
        placed.push(bind)
        const isShown = shown === from
        if (!isShown) (isLayered(bind) ? layered : binds).push(bind)
        if (cover !== undefined && (around === undefined || cover.at.length > around.at.length))
          cover.shows.push({ ...bind, isMounted: !isShown })
        else if (isShown && around !== undefined) holds.push(holdOf(bind, around))
        break
      }
      case 'cover': {
        const around = innermost(placed, step.at)
        if (around === undefined) break
        const from = throughBind(around, step.at)
        const shows: Shown[] = []
        if (step.passable) covers.push({ at: step.at, shows })
        holds.push({ how: 'cover', at: step.at, from, ...(step.passable && { shows }) })
        break
      }
      // The image has the links. The engine provides /dev, /proc and a read-only root.
      case 'link':
      case 'devices':
      case 'processes':
      case 'seal':
    }
  }
  const userDirectories = userDirectoriesIn(scratch, [...binds, ...layered, ...files])
  return { scratch, binds, layered, merged, holds, files, userDirectories }
}

/**
 * A bind that the mount around it already shows. An engine would look up its path on both sides, in a directory where a
 * link may replace it. It would then mount the link's target.
 */
const holdOf = (step: Bind, around: Bind): PlacedHold => ({
  how: step.mode === 'ro' ? 'protect' : around.mode === 'rw' ? 'pin' : 'open',
  at: step.at,
  from: step.from,
})

/** Parents come first in the steps, so the last match is the nearest parent. */
const innermost = <T extends { readonly at: string }>(placed: readonly T[], at: string): T | undefined =>
  placed.findLast(one => one.at !== at && isWithin(at, one.at))

const throughBind = (bind: Bind, at: string): string => `${bind.from}${at.slice(bind.at.length)}`

const PRIVATE = 0o700

function userDirectoriesIn(
  scratch: readonly Scratch[],
  placed: readonly { readonly at: string }[],
): string[] {
  const out = new Set<string>()
  for (const { at: home } of scratch.filter(({ mode }) => mode === PRIVATE)) {
    out.add(home)
    for (const { at } of placed.filter(mount => mount.at !== home && isWithin(mount.at, home)))
      for (let path = parent(at); path !== home; path = parent(path))
        if (!placed.some(mount => isWithin(path, mount.at))) out.add(path)
  }
  return [...out]
}

const parent = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/'

/**
 * Refuses a `VOLUME` of an image inside a granted tree. Its path is hostile. Docker would make a directory there, which
 * would stay in the project. podman has an option to make none.
 */
export function refuseVolumes(volumes: readonly string[], binds: readonly Bind[]): void {
  const within = volumes.find(path => binds.some(({ at }) => isWithin(posix.resolve('/', path), at)))
  if (within === undefined) return
  throw new PenError('IMAGE', {
    what: 'the image declares a volume inside a directory of the host',
    at: printable(within),
    hint: 'remove that VOLUME from the Dockerfile, or use podman, which can ignore it',
  })
}

/**
 * Checks a container's mounts before anything runs in it. Every mount must be the file that the host has at that path,
 * without a link in the path. Then the places that the policy protects and denies are held. An engine follows paths,
 * and another sandbox of the same project could swap one, so pen compares inodes. Any difference ends the container.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { findBeneath } from '../../base/beneath/open-beneath.ts'
import { PenError } from '../../base/error.ts'
import { O_PATH } from '../../base/kernel/descriptor.ts'
import { printable } from '../../base/printable.ts'
import { isWithin } from '../../policy/files/path.ts'
import { ANY_FILE, type FileIdentity } from '../mounts/file-identity.ts'
import type { NamespaceMounts } from '../mounts/live-mounts.ts'
import type { MountOrder } from '../mounts/mount-orders.ts'
import { mountPointsOf, onHost } from '../mounts/mount-points.ts'
import type { Bind } from './arguments.ts'
import type { PlacedHold, PlanMounts } from './plan-mounts.ts'

/** Detached mounts. */
export interface Trees {
  /** For root: one for each bind, which the sandbox's uid owns. Undefined when none is needed. */
  readonly binds: readonly number[] | undefined
  /** One for each part of a review layer. */
  readonly layered: readonly number[]
}

export interface MountsToVerify {
  readonly init: number
  readonly mounts: NamespaceMounts
  readonly plan: PlanMounts
  /** pen's own directory, and its path inside. */
  readonly own: Pick<Bind, 'from' | 'at'>
  readonly user: { readonly uid: number; readonly gid: number }
  readonly trees: Trees
}

export async function verifyMounts({ init, mounts, plan, own, user, trees }: MountsToVerify): Promise<void> {
  const host = openSync('/', O_PATH | constants.O_DIRECTORY)
  // Nothing else writes to a layer, and pen looked at it when it was opened.
  const identity = (path: string): FileIdentity =>
    plan.merged !== undefined && isWithin(path, plan.merged) ? ANY_FILE : identityOf(host, path)
  try {
    const orders: MountOrder[] = [
      { ...identityOf(host, own.from), how: 'restrict', mode: 'ro', path: own.at },
      ...(trees.binds === undefined ? restrictOrders(init, plan.binds, host) : placeOrders(plan.binds, host)),
      // No link is on the way, and the engine has at most an empty directory of pen's there.
      ...plan.layered.map(
        ({ at }, i): MountOrder => ({
          ...ANY_FILE,
          how: 'place',
          tree: (trees.binds?.length ?? 0) + i,
          path: at,
        }),
      ),
      ...plan.holds.map((hold): MountOrder => holdOrder(hold, identity)),
      ...plan.userDirectories.map((path): MountOrder => ({ ...ANY_FILE, how: 'chown', path, ...user })),
    ]
    const results = await mounts.carryOutDirectly(orders, [...(trees.binds ?? []), ...trees.layered])
    for (const [i, order] of orders.entries()) {
      const result = results[i] ?? 'changed'
      if (result === 'changed' && order.path === own.at) throw linkedImage(own.at)
      if (result !== 'held') throw mountDiffers(order.path, result === 'changed' ? undefined : result.failed)
    }
  } finally {
    closeSync(host)
  }
}

/** The engine's mounts, and the host's mounts below them, get nosuid and nodev. */
function restrictOrders(init: number, binds: readonly Bind[], host: number): MountOrder[] {
  const own = binds.map(
    (bind): MountOrder => ({
      ...identityOf(host, bind.from),
      how: 'restrict',
      mode: bind.mode,
      path: bind.at,
    }),
  )
  const below = mountPoints(init).flatMap((path): MountOrder[] => {
    const around = binds.findLast(bind => isWithin(path, bind.at))
    if (around === undefined || binds.some(bind => bind.at === path)) return []
    return [{ ...ANY_FILE, how: 'restrict', mode: around.mode, path }]
  })
  return [...own, ...below]
}

const placeOrders = (binds: readonly Bind[], host: number): MountOrder[] =>
  binds.map(
    ({ from, at }, tree): MountOrder => ({
      // The mount around it was made just before, and hides the engine's mount in it.
      ...identityOf(host, onHost(at, binds) ?? from),
      how: 'place',
      tree,
      path: at,
    }),
  )

function holdOrder(
  { how, at, from, shows = [] }: PlacedHold,
  identity: (path: string) => FileIdentity,
): MountOrder {
  const order = { ...identity(from), path: at }
  if (how !== 'cover' || shows.length === 0) return { ...order, how }
  return {
    ...order,
    how: 'cover-around',
    shows: shows.map(shown => ({
      ...identity(shown.from),
      path: shown.at,
      mode: shown.isMounted ? undefined : shown.mode,
    })),
  }
}

/** Follows no link. */
function identityOf(host: number, path: string): FileIdentity {
  const found = findBeneath(host, path, ({ dev, ino, kind }) => ({ dev, ino, kind }))
  if (found === undefined || found.kind === 'link') throw mountDiffers(path, undefined)
  return { dev: String(found.dev), ino: String(found.ino) }
}

function mountDiffers(path: string, failed: string | undefined): PenError {
  return failed === undefined
    ? new PenError('PATH_REFUSED', {
        what: 'the container’s mount at a path is not what the host has there: the path changed during the start',
        at: path,
        hint: 'run it again',
      })
    : new PenError('BACKEND', {
        what: `cannot mount in the container: ${printable(failed)}`,
        at: path,
        hint: '`pen plan` shows every mount and its reason',
      })
}

/** The mounts of pen's directory cannot be swapped, so a link in the image moved them. */
const linkedImage = (at: string): PenError =>
  new PenError('IMAGE', {
    what: `the image has a link in the path ${at}, which must be a directory`,
    hint: 'build it from another base, or without that link',
  })

/** The mount points of the process's namespace. */
export function mountPoints(pid: number): string[] {
  const points = mountPointsOf(pid)
  if (points !== undefined) return points
  throw new PenError('BACKEND', {
    what: 'the container ended while pen checked its mounts',
    hint: 'try again; the engine’s log says why it ended',
  })
}

/**
 * Before anything runs in a container: what the engine mounted is the very file that the host has at that path, without a link
 * on the way, and what the policy protects and denies in it is held. An engine follows names, and another sandbox of the same
 * project could have swapped one; here nothing is taken for its name. Whatever is not as planned ends the container.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { findBeneath } from '../../base/beneath/open-beneath.ts'
import { PenError } from '../../base/error.ts'
import { O_PATH } from '../../base/kernel/file.ts'
import { readOfProcess } from '../../base/kernel/kernel-file.ts'
import { printable } from '../../base/printable.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { NamespaceMounts } from '../mounts/live-mounts.ts'
import { WHATEVER_IS_THERE } from '../mounts/meant.ts'
import type { MountOrder } from '../mounts/mount-orders.ts'
import { onHost } from '../mounts/mount-points.ts'
import type { Bind } from './arguments.ts'
import type { OwnedTrees } from './owned-trees.ts'
import type { PlacedHold, PlanMounts } from './plan-mounts.ts'

export interface InPlace {
  readonly init: number
  readonly mounts: NamespaceMounts
  readonly plan: PlanMounts
  /** pen's own directory, and where it is to be. */
  readonly own: Pick<Bind, 'from' | 'at'>
  readonly user: { readonly uid: number; readonly gid: number }
  /** For root: trees in which the sandbox's uid is their owner. Undefined where none is needed. */
  readonly trees: OwnedTrees | undefined
}

export async function putInPlace({ init, mounts, plan, own, user, trees }: InPlace): Promise<void> {
  const host = openSync('/', O_PATH | constants.O_DIRECTORY)
  try {
    const orders: MountOrder[] = [
      { ...there(host, own.from), how: 'restrict', mode: 'ro', path: own.at },
      ...(trees === undefined ? restrictions(init, plan.binds, host) : placings(plan.binds, host)),
      ...plan.holds.map((hold): MountOrder => holdOrder(host, hold)),
      ...plan.given.map((path): MountOrder => ({ ...WHATEVER_IS_THERE, how: 'give', path, ...user })),
    ]
    const results = await mounts.furnish(orders, trees?.descriptors ?? [])
    for (const [i, order] of orders.entries()) {
      const result = results[i] ?? 'changed'
      if (result === 'changed' && order.path === own.at) throw linkedImage(own.at)
      if (result !== 'held') throw notInPlace(order.path, result === 'changed' ? undefined : result.failed)
    }
  } finally {
    closeSync(host)
  }
}

/** The engine's mounts, and those of the host below them, which it brought along: neither setuid bits nor devices. */
function restrictions(init: number, binds: readonly Bind[], host: number): MountOrder[] {
  const own = binds.map(
    (bind): MountOrder => ({
      ...there(host, bind.from),
      how: 'restrict',
      mode: bind.mode,
      path: bind.at,
    }),
  )
  const below = mountPoints(init).flatMap((path): MountOrder[] => {
    const around = binds.findLast(bind => isWithin(path, bind.at))
    if (around === undefined || binds.some(bind => bind.at === path)) return []
    return [{ ...WHATEVER_IS_THERE, how: 'restrict', mode: around.mode, path }]
  })
  return [...own, ...below]
}

const placings = (binds: readonly Bind[], host: number): MountOrder[] =>
  binds.map(
    ({ from, at }, tree): MountOrder => ({
      // The mount around it was put there just before, and hides what the engine had in it.
      ...there(host, onHost(at, binds) ?? from),
      how: 'place',
      tree,
      path: at,
    }),
  )

function holdOrder(host: number, { how, at, from, shows = [] }: PlacedHold): MountOrder {
  const order = { ...there(host, from), path: at }
  if (how !== 'cover' || shows.length === 0) return { ...order, how }
  return {
    ...order,
    how: 'cover-around',
    shows: shows.map(shown => ({
      ...there(host, shown.from),
      path: shown.at,
      mode: shown.byEngine ? undefined : shown.mode,
    })),
  }
}

/** Without following a link. */
function there(host: number, path: string): { dev: string; ino: string } {
  const found = findBeneath(host, path, ({ dev, ino, kind }) => ({ dev, ino, kind }))
  if (found === undefined || found.kind === 'link') throw notInPlace(path, undefined)
  return { dev: String(found.dev), ino: String(found.ino) }
}

function notInPlace(path: string, failed: string | undefined): PenError {
  return failed === undefined
    ? new PenError('PATH_REFUSED', {
        what: 'what the container has at a path is not what the host has there: it changed while pen was looking',
        at: path,
        hint: 'run it again',
      })
    : new PenError('BACKEND', {
        what: `a mount could not be made in the container: ${printable(failed)}`,
        at: path,
        hint: '`pen plan` shows what is mounted and why',
      })
}

/** Its mounts are pen's own, which nobody can swap: the image led them somewhere else. */
const linkedImage = (at: string): PenError =>
  new PenError('IMAGE', {
    what: `the image has a link on the way to ${at}, where a directory belongs`,
    hint: 'build it from another base, or without that link',
  })

/** As the kernel lists them for that process, blanks and newlines as octal numbers. */
export function mountPoints(pid: number): string[] {
  const table = readOfProcess(pid, 'mountinfo', 'utf8')
  if (table === undefined)
    throw new PenError('BACKEND', {
      what: 'the container ended while pen looked at its mounts',
      hint: 'try again; the engine’s own log tells why it ended',
    })
  return table
    .split('\n')
    .flatMap(line => line.split(' ')[4] ?? [])
    .map(path =>
      path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    )
}

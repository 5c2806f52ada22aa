/**
 * A mount needs a mount point. The engine makes it in an image, and bubblewrap makes it in memory. In a directory of
 * the host it would stay behind, as an empty file or directory. Both also follow links and make the target: bubblewrap
 * before 0.12 does so anywhere on the host.
 */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { readOfProcess } from '../../base/kernel/kernel-file.ts'
import { parseMounts } from '../../base/mount-table.ts'
import { printable } from '../../base/printable.ts'
import { mergedIn, type PlannedLayer } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'

export interface Mount {
  readonly at: string
  /** A path of the host. Undefined for a mount that begins empty. */
  readonly from?: string
}

/** The nearest mount around a path inside. Undefined when the path is in the image. */
const around = (at: string, mounts: readonly Mount[]): Mount | undefined =>
  mounts
    .filter(mount => mount.at !== at && isWithin(at, mount.at))
    .reduce<Mount | undefined>((a, b) => (a === undefined || b.at.length >= a.at.length ? b : a), undefined)

/** The host's path for a path inside. Undefined when the path is in the image. */
export function onHost(at: string, mounts: readonly Mount[]): string | undefined {
  const mount = around(at, mounts)
  return mount?.from === undefined ? undefined : `${mount.from}${at.slice(mount.at.length)}`
}

/** The host's path of each name from the nearest mount around a path inside down to it. None when it is in the image. */
export function wayOnHost(at: string, mounts: readonly Mount[]): readonly string[] {
  const mount = around(at, mounts)
  if (mount?.from === undefined) return []
  const names = at
    .slice(mount.at.length)
    .split('/')
    .filter(name => name !== '')
  return names.map((_, i) => [mount.from, ...names.slice(0, i + 1)].join('/'))
}

/** Whether the mount point is in the merged tree of a review layer. */
export function isInLayer({ at }: Mount, mounts: readonly Mount[], layer: PlannedLayer | undefined): boolean {
  const path = onHost(at, mounts)
  return layer !== undefined && path !== undefined && isWithin(path, mergedIn(layer.dir))
}

/** A mount point in a directory of the host, as it was when pen looked. */
export interface MountPoint {
  readonly path: string
  readonly ino: bigint
}

export function requireMountPoints(targets: readonly string[], mounts: readonly Mount[]): MountPoint[] {
  const fine = new Map<string, bigint>()
  return targets.flatMap(at => {
    const way = wayOnHost(at, mounts)
    for (const path of way) {
      if (fine.has(path)) continue
      const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
      if (found === undefined) throw notMounted(at, path, 'it does not exist')
      if (found.isSymbolicLink()) throw notMounted(at, path, 'its path contains a link')
      fine.set(path, found.ino)
    }
    const path = way.at(-1)
    return path === undefined ? [] : [{ path, ino: fine.get(path) ?? 0n }]
  })
}

const notMounted = (at: string, path: string, why: string): PenError =>
  new PenError('MOUNT_SOURCE', {
    what: `cannot mount at ${printable(at)}: ${why}, and pen makes nothing in directories of the host`,
    at: path,
    hint: 'make it yourself, or choose another path in "mounts"',
  })

/** The mount points of a process's namespace. Undefined when the process is gone. */
export function mountPointsOf(pid: number): string[] | undefined {
  const table = readOfProcess(pid, 'mountinfo', 'utf8')
  return table === undefined ? undefined : parseMounts(table).map(({ point }) => point)
}

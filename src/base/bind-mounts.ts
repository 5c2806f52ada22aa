/** Finds the other paths at which bind mounts show a file or a directory. A read-only mount protects one path alone. */

import { type MountEntry, mountOf } from './mount-table.ts'

export function otherPathsOf(path: string, mounts: readonly MountEntry[]): string[] {
  const own = mountOf(path, mounts)
  if (own === undefined) return []
  const inFileSystem = `${trimmed(own.root)}${path.slice(trimmed(own.point).length)}`
  const found = mounts.flatMap(mount => {
    if (mount.device !== own.device) return []
    const other = isWithin(inFileSystem, mount.root)
      ? `${trimmed(mount.point)}${inFileSystem.slice(trimmed(mount.root).length)}`
      : isWithin(mount.root, inFileSystem)
        ? mount.point
        : undefined
    // Another mount may hide it.
    return other !== undefined && mountOf(other, mounts) === mount ? [other] : []
  })
  return [...new Set(found)].filter(other => !isWithin(other, path))
}

const trimmed = (path: string): string => (path === '/' ? '' : path)

const isWithin = (path: string, tree: string): boolean =>
  path === tree || path.startsWith(`${trimmed(tree)}/`)

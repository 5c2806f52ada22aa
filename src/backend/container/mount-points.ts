/**
 * A mount needs something to be mounted on. In an image the engine makes that; in a directory of the host it would stay there, as
 * an empty file or directory that nobody asked for.
 */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { isWithin } from '../../policy/path.ts'
import type { Bind } from './arguments.ts'

/** What the host has at a path inside, by the nearest mount around it; undefined where that is the image. */
export function onHost(at: string, binds: readonly Bind[]): string | undefined {
  const around = binds
    .filter(bind => bind.at !== at && isWithin(at, bind.at))
    .reduce<Bind | undefined>((a, b) => (a === undefined || b.at.length >= a.at.length ? b : a), undefined)
  return around === undefined ? undefined : `${around.from}${at.slice(around.at.length)}`
}

export function requireMountPoints(targets: readonly string[], binds: readonly Bind[]): void {
  for (const at of targets) {
    const path = onHost(at, binds)
    if (path === undefined || lstatSync(path, { throwIfNoEntry: false }) !== undefined) continue
    throw new PenError('MOUNT_SOURCE', {
      what: `nothing can be mounted at ${printable(at)}: it does not exist, and pen leaves nothing in directories of the host`,
      at: path,
      hint: 'make it yourself, or choose another place in "mounts"',
    })
  }
}

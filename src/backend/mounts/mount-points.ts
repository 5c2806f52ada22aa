/**
 * A mount needs something to be mounted on. In an image the engine makes that, and in memory bubblewrap; in a directory of the host it
 * would stay there, as an empty file or directory that nobody asked for. Both also follow links, and make what they lead to:
 * bubblewrap, until 0.12, anywhere on the host.
 */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { isWithin } from '../../policy/files/path.ts'

interface Mount {
  readonly at: string
  /** A path of the host; undefined for one that begins empty. */
  readonly from?: string
}

/** The nearest mount around a path inside; undefined where that is the image. */
const around = (at: string, mounts: readonly Mount[]): Mount | undefined =>
  mounts
    .filter(mount => mount.at !== at && isWithin(at, mount.at))
    .reduce<Mount | undefined>((a, b) => (a === undefined || b.at.length >= a.at.length ? b : a), undefined)

/** What the host has at a path inside; undefined where that is the image's. */
export function onHost(at: string, mounts: readonly Mount[]): string | undefined {
  const mount = around(at, mounts)
  return mount?.from === undefined ? undefined : `${mount.from}${at.slice(mount.at.length)}`
}

export function requireMountPoints(targets: readonly string[], mounts: readonly Mount[]): void {
  const fine = new Set<string>()
  for (const at of targets) {
    const mount = around(at, mounts)
    if (mount?.from === undefined) continue
    let path = mount.from
    for (const name of at.slice(mount.at.length).split('/')) {
      if (name === '') continue
      path = `${path}/${name}`
      if (fine.has(path)) continue
      const found = lstatSync(path, { throwIfNoEntry: false })
      if (found === undefined) throw notMounted(at, path, 'it does not exist')
      if (found.isSymbolicLink()) throw notMounted(at, path, 'there is a link on the way')
      fine.add(path)
    }
  }
}

const notMounted = (at: string, path: string, why: string): PenError =>
  new PenError('MOUNT_SOURCE', {
    what: `nothing can be mounted at ${printable(at)}: ${why}, and pen leaves nothing in directories of the host`,
    at: path,
    hint: 'make it yourself, or choose another place in "mounts"',
  })

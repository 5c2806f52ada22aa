/** The file system of the project: what on it would weaken a sandbox, or stop it. */
import { existsSync, statfsSync } from 'node:fs'
import { dirname } from '../base/posix-path.ts'
import { foldsNames } from '../survey/case-folding.ts'
import { type Finding, fails, ok, weak } from './finding.ts'
import type { Machine } from './machine.ts'
import { hintOf, messageOf } from './message.ts'
import { type MountEntry, mountOf, mountsHere } from './mount-table.ts'

const NETWORK = /^(nfs4?|cifs|smb3?|9p|ceph|afs|glusterfs|lustre|fuse\.(sshfs|glusterfs|ceph.*|rclone|s3fs))$/
const FUSE = /^fuse(blk|\.|$)/
/** A build fills less than this in a moment. */
const LITTLE_BYTES = 512 * 2 ** 20
const MIB = 2 ** 20

export async function checkProject({ project, misplaced }: Machine): Promise<readonly Finding[]> {
  if (project === undefined)
    return [weak('project', messageOf(misplaced), 'the rest was tried elsewhere', hintOf(misplaced))]
  const { workspace } = project.world
  if (foldsNames(workspace))
    return [
      fails(
        'project',
        `the file system of ${workspace} takes names in any case`,
        'denied and protected files are open by another spelling: a gap, names-folded, at which pen run stops',
        'keep the project on a file system of Linux itself, or pen run --accept-gap names-folded',
      ),
    ]
  const options = mountOf(workspace, mountsHere())?.options
  return [
    describePlace('project', workspace, [
      ...(options?.has('ro') ? ['it is read-only: commands can write nothing'] : []),
      ...(options?.has('noexec') ? ['it is mounted noexec: programs that a build makes do not start'] : []),
    ]),
  ]
}

function remarksOf(mount: MountEntry | undefined): string[] {
  if (mount === undefined) return []
  if (NETWORK.test(mount.type))
    return [`it is on the network (${mount.type}): locks and file watches are only as good as the server`]
  return FUSE.test(mount.type)
    ? [`a program serves it (${mount.type}): that is slow, and root may not see it`]
    : []
}

/** What it is on, how much room is left, and what is to be said of both. */
export function describePlace(id: string, path: string, more: readonly string[] = []): Finding {
  const mount = mountOf(nearestThere(path), mountsHere())
  const remarks = [...remarksOf(mount), ...more]
  const left = room(path)
  const what = `${path} on ${mount?.type ?? 'an unknown file system'}${showOptions(mount)}, ${Math.floor(left / MIB)} MiB left`
  const all = [...remarks, ...(left < LITTLE_BYTES ? ['little room is left'] : [])]
  if (all.length === 0) return ok(id, what)
  return weak(id, what, all.join('; '), 'use a local disk with room, mounted without these options')
}

/** Options that forbid something, those that make no difference to a sandbox too: people look for them. */
function showOptions(mount: MountEntry | undefined): string {
  const told = ['ro', 'noexec', 'nosuid', 'nodev'].filter(option => mount?.options.has(option))
  return told.length === 0 ? '' : ` (${told.join(', ')})`
}

function room(path: string): number {
  const { bavail, bsize } = statfsSync(nearestThere(path))
  return bavail * bsize
}

/** Itself, or the first directory above that exists. */
export function nearestThere(path: string): string {
  return path === '/' || existsSync(path) ? path : nearestThere(dirname(path))
}

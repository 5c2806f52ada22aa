/** Checks the file system of the project for what would weaken or stop a sandbox. */
import { existsSync, statfsSync } from 'node:fs'
import { type MountEntry, mountOf, mountsHere } from '../base/mount-table.ts'
import { dirname } from '../base/posix-path.ts'
import { foldsNames } from '../survey/case-folding.ts'
import { type Finding, fails, hintOf, messageOf, ok, weak } from './finding.ts'
import type { Machine } from './machine.ts'

const NETWORK = /^(nfs4?|cifs|smb3?|9p|ceph|afs|glusterfs|lustre|fuse\.(sshfs|glusterfs|ceph.*|rclone|s3fs))$/
const FUSE = /^fuse(blk|\.|$)/
/** A build can fill less than this quickly. */
const LOW_SPACE_BYTES = 512 * 2 ** 20
const MIB = 2 ** 20

export async function checkProject({ project, misplaced }: Machine): Promise<readonly Finding[]> {
  if (project === undefined)
    return [
      weak('project', messageOf(misplaced), 'the other checks ran outside a project', hintOf(misplaced)),
    ]
  const { workspace } = project.world
  if (foldsNames(workspace))
    return [
      fails(
        'project',
        `the file system of ${workspace} ignores case`,
        'denied and protected files can be opened with another spelling: pen run stops at the gap names-folded',
        'move the project to a case-sensitive file system, or pen run --accept-gap names-folded',
      ),
    ]
  const options = mountOf(workspace, mountsHere())?.options
  return [
    describePlace('project', workspace, [
      ...(options?.has('ro') ? ['it is read-only: commands cannot write'] : []),
      ...(options?.has('noexec') ? ['it is mounted noexec: built programs do not start'] : []),
    ]),
  ]
}

function remarksOf(mount: MountEntry | undefined): string[] {
  if (mount === undefined) return []
  if (NETWORK.test(mount.type))
    return [`it is a network file system (${mount.type}): locks and file watches may not work`]
  return FUSE.test(mount.type)
    ? [`it is a FUSE file system (${mount.type}): it is slow, and root may not see it`]
    : []
}

/** Reports the file system and the free space of a path. */
export function describePlace(id: string, path: string, more: readonly string[] = []): Finding {
  const mount = mountOf(nearestExisting(path), mountsHere())
  const free = freeBytes(path)
  const what = `${path} on ${mount?.type ?? 'an unknown file system'}${showOptions(mount)}, ${Math.floor(free / MIB)} MiB free`
  const remarks = [...remarksOf(mount), ...more, ...(free < LOW_SPACE_BYTES ? ['little space is free'] : [])]
  if (remarks.length === 0) return ok(id, what)
  return weak(id, what, remarks.join('; '), 'use a local disk with free space, mounted without these options')
}

/** All restricting options, including those that make no difference to a sandbox. */
function showOptions(mount: MountEntry | undefined): string {
  const shown = ['ro', 'noexec', 'nosuid', 'nodev'].filter(option => mount?.options.has(option))
  return shown.length === 0 ? '' : ` (${shown.join(', ')})`
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(nearestExisting(path))
  return bavail * bsize
}

/** The path itself, or its nearest parent that exists. */
export function nearestExisting(path: string): string {
  return path === '/' || existsSync(path) ? path : nearestExisting(dirname(path))
}

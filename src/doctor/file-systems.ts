/** The file systems of the project and of pen's own state: what on them would weaken a sandbox, or stop it. */
import { existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { foldsNames } from '../sandbox/folded-names.ts'
import { type Finding, fails, ok, weak } from './finding.ts'
import type { Machine } from './machine.ts'
import { hintOf, messageOf } from './message.ts'
import { type MountEntry, mountOf, mountsHere } from './mount-table.ts'

const NETWORK = /^(nfs4?|cifs|smb3?|9p|ceph|afs|glusterfs|lustre|fuse\.(sshfs|glusterfs|ceph.*|rclone|s3fs))$/
const FUSE = /^fuse(blk|\.|$)/
/** A build fills less than this in a moment. */
const LITTLE_BYTES = 512 * 2 ** 20
const MIB = 2 ** 20

export async function checkFileSystems(machine: Machine): Promise<readonly Finding[]> {
  const mounts = mountsHere()
  return [...projectFindings(machine, mounts), ...stateFindings(machine, mounts)]
}

function projectFindings({ project, misplaced }: Machine, mounts: readonly MountEntry[]): Finding[] {
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
  const mount = mountOf(workspace, mounts)
  const remarks = [
    ...remarksOf(mount),
    ...(mount?.options.has('ro') ? ['it is read-only: commands can write nothing'] : []),
    ...(mount?.options.has('noexec')
      ? ['it is mounted noexec: programs that a build makes do not start']
      : []),
  ]
  return [summary('project', workspace, mount, remarks)]
}

function stateFindings({ state, scratch }: Machine, mounts: readonly MountEntry[]): Finding[] {
  if (scratch === undefined)
    return [
      fails(
        'state',
        `nothing can be written at ${state}`,
        'the audit of every run is kept there',
        `give it to yourself: sudo chown -R "$(id -u)" ${state}`,
      ),
    ]
  const mount = mountOf(nearestThere(state), mounts)
  return [summary('state', state, mount, remarksOf(mount))]
}

function remarksOf(mount: MountEntry | undefined): string[] {
  if (mount === undefined) return []
  if (NETWORK.test(mount.type))
    return [`it is on the network (${mount.type}): locks and file watches are only as good as the server`]
  return FUSE.test(mount.type)
    ? [`a program serves it (${mount.type}): that is slow, and root may not see it`]
    : []
}

function summary(
  id: string,
  path: string,
  mount: MountEntry | undefined,
  remarks: readonly string[],
): Finding {
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

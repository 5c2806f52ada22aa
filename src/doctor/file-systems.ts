/** Checks the file systems of the project and of pen's state for what would weaken or stop a sandbox. */
import { existsSync, lstatSync, mkdirSync, rmdirSync, statfsSync } from 'node:fs'
import { errnoText } from '../base/error.ts'
import { type MountEntry, mountOf, mountsHere } from '../base/mount-table.ts'
import { dirname } from '../base/posix-path.ts'
import { cgroupName } from '../limits/cgroup-name.ts'
import { foldsNames } from '../survey/case-folding.ts'
import { fails, hintOf, type Machine, messageOf, ok, type Result, weak } from './finding.ts'

const NETWORK = /^(nfs4?|cifs|smb3?|9p|ceph|afs|glusterfs|lustre|fuse\.(sshfs|glusterfs|ceph.*|rclone|s3fs))$/
const FUSE = /^fuse(blk|\.|$)/
/** A build can fill less than this quickly. */
const LOW_SPACE_BYTES = 512 * 2 ** 20
const MIB = 2 ** 20

export function checkProject({ project, misplaced }: Machine): Result {
  if (project === undefined)
    return weak(messageOf(misplaced), 'the other checks ran outside a project', hintOf(misplaced))
  const { workspace } = project.world
  if (foldsNames(workspace))
    return fails(
      `the file system of ${workspace} ignores case`,
      'denied and protected files can be opened with another spelling: pen run stops at the gap names-folded',
      'move the project to a case-sensitive file system, or pen run --accept-gap names-folded',
    )
  const options = mountOf(workspace, mountsHere())?.options
  return describePlace(workspace, [
    ...(options?.has('ro') ? ['it is read-only: commands cannot write'] : []),
    ...(options?.has('noexec') ? ['it is mounted noexec: built programs do not start'] : []),
  ])
}

/** Only this user may be able to write pen's configs, audit and caches. */
export function checkState({ state, project }: Machine): Result {
  const sandbox = project === undefined ? [] : ['audit', 'volumes'].map(name => `${project.stateDir}/${name}`)
  const places = [`${state}/cache/etc`, `${state}/sandboxes`, ...sandbox]
  for (const place of new Set(places.map(nearestExisting))) {
    const problem = tryToWrite(place)
    if (problem !== undefined)
      return fails(
        `cannot write in ${place} (${problem})`,
        'pen stores configs, audits and caches there, and runs nothing without an audit',
        problem === 'ENOTDIR'
          ? `mv ${place} ${place}.old, because it is not a directory`
          : `sudo chown -R "$(id -u)" ${state}; chmod -R u+rwX ${state}`,
      )
  }
  const own = project === undefined ? [] : [project.stateDir]
  const open = [state, `${state}/sandboxes`, ...own].filter(path => isOpen(path, 0o022))
  if (open.length === 0) return describePlace(state)
  // If every user can write all of it, pen refuses to run.
  return (isOpen(state, 0o002) ? fails : weak)(
    `other users can write ${open.join(' and ')}`,
    'they could change what your sandboxes can do',
    `chmod go-w ${open.join(' ')}`,
  )
}

/** Creates and removes a directory, as a run does. */
function tryToWrite(dir: string): string | undefined {
  const made = `${dir}/.${cgroupName('probe')}`
  try {
    mkdirSync(made, { mode: 0o700 })
    rmdirSync(made)
    return undefined
  } catch (error) {
    return errnoText(error)
  }
}

function isOpen(path: string, to: number): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  return stats?.isDirectory() === true && (stats.mode & to) !== 0
}

/** Reports the file system and the free space of a path. */
function describePlace(path: string, more: readonly string[] = []): Result {
  const existing = nearestExisting(path)
  const mount = mountOf(existing, mountsHere())
  const { bavail, bsize } = statfsSync(existing)
  const free = bavail * bsize
  const what = `${path} on ${mount?.type ?? 'an unknown file system'}${showOptions(mount)}, ${Math.floor(free / MIB)} MiB free`
  const remarks = [...remarksOf(mount), ...more, ...(free < LOW_SPACE_BYTES ? ['little space is free'] : [])]
  if (remarks.length === 0) return ok(what)
  return weak(what, remarks.join('; '), 'use a local disk with free space, mounted without these options')
}

function remarksOf(mount: MountEntry | undefined): string[] {
  if (mount === undefined) return []
  if (NETWORK.test(mount.type))
    return [`it is a network file system (${mount.type}): locks and file watches may not work`]
  return FUSE.test(mount.type)
    ? [`it is a FUSE file system (${mount.type}): it is slow, and root may not see it`]
    : []
}

/** All restricting options, including those that make no difference to a sandbox. */
function showOptions(mount: MountEntry | undefined): string {
  const shown = ['ro', 'noexec', 'nosuid', 'nodev'].filter(option => mount?.options.has(option))
  return shown.length === 0 ? '' : ` (${shown.join(', ')})`
}

/** The path itself, or its nearest parent that exists. */
const nearestExisting = (path: string): string =>
  path === '/' || existsSync(path) ? path : nearestExisting(dirname(path))

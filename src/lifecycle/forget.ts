/** Stops a sandbox and removes its state. Never removes the project. */
import { existsSync, readFileSync, readlinkSync, rmdirSync } from 'node:fs'
import { auditDirectory } from '../audit/directory.ts'
import { runningPids } from '../audit/running.ts'
import { lookAt } from '../base/beneath/look-at.ts'
import { removeTree } from '../base/beneath/remove-tree.ts'
import { errnoOf, errnoText, PenError } from '../base/error.ts'
import { basename, dirname } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'
import { named, namesOf, sharedOf } from '../config/project.ts'
import { presenceOf, statePaths, withChangeLock } from '../control/state.ts'
import type { HostPath } from '../policy/files/path.ts'
import { listCheckpoints } from '../review/checkpoint/checkpoint.ts'
import { journalFile } from '../review/journal.ts'
import { hasChanges, layerPaths } from '../review/layer.ts'
import { updateHosts } from '../ssh/ssh-host.ts'
import { namesIn, stateOfUser } from './list.ts'
import { stopSandbox } from './stop.ts'

const VOLUMES = 'volumes'

export const isKnown = (stateDir: string): boolean => namesIn(stateDir).length > 0

/** Whether commits, staged files or what was moved away from the project may be here alone. A clean copy of a repository is not. */
export function hasOnlyCopies(stateDir: string): boolean {
  const git = `${stateDir}/git`
  const entries = namesIn(git).filter(name => !/\.(?:lock|sync)$/.test(name))
  const isClean = (entry: string): boolean => {
    const names = namesIn(`${git}/${entry}`)
    if (!names.includes('synced')) return !entry.includes('.damaged-') && !names.includes('adopted')
    return names.includes('seen') && readFileSync(`${git}/${entry}/seen`, 'utf8').startsWith('clean\n')
  }
  const directories = entries.filter(name => lookAt(`${git}/${name}`)?.isDirectory())
  const quarantined = namesIn(`${stateDir}/quarantine`)
  return directories.some(entry => !isClean(entry)) || quarantined.length > 0
}

/** What `pen rm` keeps without `--volumes`. The volumes of a named sandbox are no other sandbox's, so they go with the name. */
export const keptVolumes = (stateDir: string): readonly string[] => (isNamed(stateDir) ? [] : [VOLUMES])

export const isNamed = (stateDir: string): boolean => sharedOf(stateDir) !== stateDir

export async function forgetSandbox(
  stateDir: string,
  {
    keep,
    discard,
  }: {
    readonly keep: readonly string[]
    /** Also changes that were never accepted. */
    readonly discard: boolean
  },
): Promise<void> {
  const lock = basename(statePaths(stateDir).changing)
  await withChangeLock(stateDir, async () => {
    refuseWithNames(stateDir)
    const presence = await presenceOf(stateDir)
    refuseWhileRunning(stateDir, presence.is === 'present' ? presence.owner?.pid : undefined)
    await stopSandbox(stateDir)
    await lookAfterKill(sharedOf(stateDir))
    refuseHalfAccepted(stateDir)
    if (!discard) refuseUnreviewed(stateDir)
    for (const name of namesIn(stateDir))
      if (name !== lock && !keep.includes(name)) removeState(`${stateDir}/${name}`)
  })
  // Only after the lock file is released, and only if no other command uses the directory again.
  removeIfEmpty(stateDir)
  if (isNamed(stateDir)) removeIfEmpty(dirname(stateDir))
  await updateHosts(stateOfUser())
}

/** Without the project's config, its named sandboxes would come back with other rules. */
export function refuseWithNames(stateDir: string): void {
  const names = namesOf(stateDir)
  if (names.length === 0) return
  const shared = { id: basename(stateDir), stateDir: stateDir as HostPath }
  const ids = names.map(name => named(shared, name).id)
  throw new PenError('STATE', {
    what: `the project has named sandboxes, which use its config: ${names.join(', ')}; nothing was removed`,
    at: stateDir,
    hint: `first ${ids.map(id => `pen rm ${id}`).join('; ')}`,
  })
}

function refuseUnreviewed(stateDir: string): void {
  if (!hasChanges(stateDir) && listCheckpoints(stateDir).length === 0) return
  throw new PenError('STATE', {
    what: `the sandbox ${basename(stateDir)} has changes or checkpoints that you have not accepted; nothing was removed`,
    at: layerPaths(stateDir).dir,
    hint: 'pen diff shows them; pen accept applies them; or pass --discard to delete them',
  })
}

/** The journal knows names of pen's in the project, and versions of the user's files under them. */
function refuseHalfAccepted(stateDir: string): void {
  const journal = journalFile(layerPaths(stateDir).dir)
  if (!existsSync(journal)) return
  throw new PenError('STATE', {
    what: `pen accept is at work in the sandbox ${basename(stateDir)}, or was killed; nothing was removed`,
    at: journal,
    hint: 'pen diff finishes or undoes what a killed one began; then try again',
  })
}

/** The record of a killed run says where to look. Without it, what the sandbox made there would count as the user's. */
async function lookAfterKill(stateDir: string): Promise<void> {
  const { sweepKilledRuns } = await import('../protect/sweep-killed-runs.ts')
  const found: string[] = []
  const makers = await sweepKilledRuns(stateDir, ({ path }) => void found.push(path))
  for (const { isThere, done } of makers)
    if (isThere) found.push('.git')
    else done()
  const [first] = found
  if (first === undefined) return
  throw new PenError('STATE', {
    what: `a killed run left something at protected paths, such as ${printable(first, 1024)}; nothing was removed`,
    at: stateDir,
    hint: `run pen run -- true in the project, look at ${printable(stateDir, 1024)}/quarantine, then try again`,
  })
}

/**
 * Refuses while a `pen run` uses the project's audit and volumes: only the user can decide to end it. The supervisor of `pen start` is
 * excepted: the caller stops it.
 */
export function refuseWhileRunning(stateDir: string, supervisor: number | undefined): void {
  const pid = runningPids(auditDirectory(stateDir)).find(one => one !== supervisor && isPen(one))
  if (pid === undefined) return
  throw new PenError('STATE', {
    what: `a pen run still uses the sandbox ${basename(stateDir)} (process ${pid}); nothing was removed`,
    at: stateDir,
    hint: 'end it, then try again',
  })
}

/** The kernel may have reused the pid of a killed pen. */
function isPen(pid: number): boolean {
  try {
    return nameOf(readlinkSync(`/proc/${pid}/exe`)) === nameOf(process.execPath)
  } catch {
    return false
  }
}

const nameOf = (program: string): string => basename(program).replace(/ \(deleted\)$/, '')

/** Returns whether the directory is gone. */
export function removeIfEmpty(directory: string): boolean {
  try {
    rmdirSync(directory)
    return true
  } catch (error) {
    const errno = errnoOf(error) ?? ''
    if (['ENOTEMPTY', 'ENOENT', 'EEXIST'].includes(errno)) return errno === 'ENOENT'
    throw notRemoved(directory, error)
  }
}

/** Other users of a container may have left files in a volume that this user cannot remove. Those stay, with an error. */
export function removeState(path: string): void {
  try {
    removeTree(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw notRemoved(path, error)
  }
}

const notRemoved = (path: string, cause: unknown): PenError =>
  new PenError('STATE', {
    what: `cannot remove a part of the state (${errnoText(cause)})`,
    at: path,
    hint:
      errnoOf(cause) === 'EXDEV'
        ? 'something is mounted below this path: unmount it (findmnt lists it), then try again'
        : 'chmod -R u+w this path and its parent directory, then rm -r this path',
    cause,
  })

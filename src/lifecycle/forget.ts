/** Stops a sandbox and removes its state. Never removes the project. */
import { readlinkSync, rmdirSync } from 'node:fs'
import { auditDirectory } from '../audit/directory.ts'
import { runningPids } from '../audit/running.ts'
import { removeTree } from '../base/beneath/remove-tree.ts'
import { errnoOf, errnoText, PenError } from '../base/error.ts'
import { basename } from '../base/posix-path.ts'
import { presenceOf, statePaths, withChangeLock } from '../control/state.ts'
import { namesIn } from './list.ts'
import { stopSandbox } from './stop.ts'

export const VOLUMES = 'volumes'

export const isKnown = (stateDir: string): boolean => namesIn(stateDir).length > 0

export async function forgetSandbox(
  stateDir: string,
  { keep }: { readonly keep: readonly string[] },
): Promise<void> {
  const lock = basename(statePaths(stateDir).changing)
  await withChangeLock(stateDir, async () => {
    const presence = await presenceOf(stateDir)
    refuseWhileRunning(stateDir, presence.is === 'present' ? presence.owner?.pid : undefined)
    await stopSandbox(stateDir)
    for (const name of namesIn(stateDir))
      if (name !== lock && !keep.includes(name)) removeState(`${stateDir}/${name}`)
  })
  // Only after the lock file is released, and only if no other command uses the directory again.
  removeIfEmpty(stateDir)
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
    hint: 'chmod -R u+w this path and its parent directory, then rm -r this path',
    cause,
  })

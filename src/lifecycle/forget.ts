/** Ends a sandbox and removes what pen keeps of it. Never the project. */
import { rmdirSync } from 'node:fs'
import { removeTree } from '../base/beneath/remove-tree.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { basename } from '../base/posix-path.ts'
import { presenceOf, statePaths, withChangeLock } from '../control/state.ts'
import { namesIn } from './list.ts'
import { refuseWhileRunning } from './refuse-while-running.ts'
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
  // Not while the lock stands in it; and not when somebody has begun to use it again.
  removeIfEmpty(stateDir)
}

/** Whether it is gone. */
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

/** What other users of a container put into a volume may be without the right to be removed: that is told, and stays. */
export function removeState(path: string): void {
  try {
    removeTree(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw notRemoved(path, error)
  }
}

const notRemoved = (path: string, cause: unknown): PenError =>
  new PenError('STATE', {
    what: `a part of the state could not be removed (${errnoOf(cause) ?? 'unknown error'})`,
    at: path,
    hint: 'remove it yourself: chmod -R u+w, also of the directory above, then rm -r',
    cause,
  })

/** Ends a sandbox and removes what pen keeps of it. Never the project. */
import { chmodSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { basename } from 'node:path'
import { errnoOf, PenError } from '../base/error.ts'
import { namesIn } from './list-sandboxes.ts'
import { stopSandbox } from './stop-keeper.ts'
import { placesOf, whileChanging } from './store.ts'

export const VOLUMES = 'volumes'

export const isKnown = (stateDir: string): boolean => namesIn(stateDir).length > 0

export async function forgetSandbox(
  stateDir: string,
  { keep }: { readonly keep: readonly string[] },
): Promise<void> {
  const lock = basename(placesOf(stateDir).changing)
  await whileChanging(stateDir, async () => {
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
    if (!['ENOTEMPTY', 'ENOENT', 'EEXIST'].includes(errno)) throw error
    return errno === 'ENOENT'
  }
}

/** What other users of a container put into a volume may be without the right to be removed: that is told, and stays. */
export function removeState(path: string): void {
  try {
    if (isRemoved(path)) return
    openDirectories(path)
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    throw new PenError('STATE', {
      what: `a part of the state could not be removed (${errnoOf(error) ?? 'unknown error'})`,
      at: path,
      hint: 'remove it yourself: chmod -R u+w, then rm -r',
      cause: error,
    })
  }
}

/** False when there is a directory that cannot be written: caches of modules are kept so, against careless hands. */
function isRemoved(path: string): boolean {
  try {
    rmSync(path, { recursive: true, force: true })
    return true
  } catch (error) {
    if (errnoOf(error) === 'EACCES') return false
    throw error
  }
}

/** Whoever could put a link in the place of a directory has ended before. */
function openDirectories(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return
  chmodSync(path, 0o700)
  for (const name of readdirSync(path)) openDirectories(`${path}/${name}`)
}

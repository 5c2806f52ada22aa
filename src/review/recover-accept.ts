/** Finishes or undoes what a killed accept had begun. Then the project has only whole files, and no name of pen's. */
import { at } from '../base/beneath/beneath.ts'
import { lookAt } from '../base/beneath/look-at.ts'
import { exchange } from '../base/beneath/rename-at.ts'
import type { Places } from './apply-changes.ts'
import type { Left } from './choose-changes.ts'
import { nameBytes } from './entry.ts'
import { Journal, readUnfinished, type Step } from './journal.ts'
import { OpenDirectories } from './open-directories.ts'
import { drop, moveToFree, removeBeside } from './put-in-place.ts'
import { NotAsShown } from './stage.ts'

/** Returns what the user should look at. The caller holds the lock of accepts. */
export function recoverAccept(places: Places): readonly Left[] {
  const unfinished = readUnfinished(places.layer)
  const left: Left[] = []
  if (unfinished !== undefined) {
    using directories = new OpenDirectories(places.workspace, places.tree, 'write')
    for (const step of unfinished.steps)
      try {
        recover(step, unfinished.staged, directories)
      } catch (error) {
        if (!(error instanceof NotAsShown)) throw error
        left.push({ path: step.path, why: error.message })
      }
  }
  new Journal(places.layer).close()
  return left
}

/** Before the inodes were recorded, nothing was exchanged: the name has a half-written file of pen's. */
function recover(
  { path, beside, before }: Step,
  staged: Readonly<Record<string, bigint>> | undefined,
  directories: OpenDirectories,
): void {
  const { dir, name } = directories.at(path)
  const found = lookAt(at(dir, beside))
  if (found === undefined) return
  const ino = staged?.[beside]
  if (staged === undefined || found.ino === ino) {
    removeBeside(dir, beside)
    return
  }
  if (before !== null && drop(dir, beside, before) === undefined) return
  const now = lookAt(at(dir, nameBytes(name)))
  if (now === undefined) moveToFree(dir, beside, name)
  else if (now.ino === ino) {
    exchange(dir, beside, nameBytes(name))
    removeBeside(dir, beside)
  } else throw new NotAsShown(`a version of it is kept beside it, as ${beside}`)
}

/**
 * Makes directories for the mounts of a plan. In the project, a running sandbox may swap directories for links. Followed by
 * root, such a link could lead anywhere. So each component is made in an open directory, and no link is followed.
 */
import { closeSync, lchownSync, lstatSync, mkdirSync } from 'node:fs'
import { at, type OpenStep, openDirectory, walk } from '../base/beneath/beneath.ts'
import { errnoOf, errnoText, PenError } from '../base/error.ts'
import { removeIfEmpty } from '../base/remove-if-empty.ts'
import type { UndoStack } from '../base/undo.ts'
import type { Plan } from '../plan/plan.ts'
import { isWithin } from '../policy/files/path.ts'

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Makes the directories that the plan mounts. The run's end removes those in the project that stayed empty. */
export function makeDirectories(plan: Plan, undo: UndoStack): void {
  if (plan.makeDirectories.length === 0) return
  const owner = lstatSync(plan.workspace)
  for (const path of plan.makeDirectories) {
    // The layer has it.
    if (plan.layer !== undefined && isWithin(path, plan.workspace)) continue
    try {
      if (!isWithin(path, plan.workspace)) {
        mkdirSync(path, { recursive: true, mode: 0o700 })
        continue
      }
      // A directory that root makes in a user's project belongs to that user.
      const giveTo = plan.runAs !== 'self' && owner.uid !== 0 ? owner : undefined
      // Deepest last: the stack unwinds newest first.
      for (const made of makeDirectoryBeneath(plan.workspace, path, giveTo))
        undo.push('an empty directory', () => removeIfEmpty(made))
    } catch (error) {
      throw new PenError('STATE', {
        what: `a directory could not be made (${errnoText(error)})`,
        at: path,
        hint: 'check that it may be written and that the disk is not full',
        cause: error,
      })
    }
  }
}

/** Returns the new directories, parents first. `owner` is their owner, when that is another user. */
export function makeDirectoryBeneath(
  root: string,
  path: string,
  owner: Owner | undefined,
): readonly string[] {
  const made: string[] = []
  let here = root
  const make: OpenStep = (parent, name) => {
    here = `${here}/${name}`
    if (makeOne(at(parent, name), owner)) made.push(here)
    return enter(at(parent, name))
  }
  const top = enter(root)
  try {
    walk(top, path.slice(root.length + 1).split('/'), make, () => undefined)
    return made
  } finally {
    closeSync(top)
  }
}

function enter(path: string | Buffer): number {
  const fd = openDirectory(path)
  if (fd === undefined) throw Object.assign(new Error('it is not a directory'), { code: 'ENOTDIR' })
  return fd
}

function makeOne(path: string | Buffer, owner: Owner | undefined): boolean {
  try {
    mkdirSync(path, { mode: 0o755 })
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
  if (owner !== undefined) lchownSync(path, owner.uid, owner.gid)
  return true
}

/** From what a person typed to the place that is granted: canonical, allowed to be granted, and of a known identity. */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { penPlaces } from '../../base/pen-places.ts'
import {
  checkGrantable,
  type FileGrant,
  type GrantedPolicy,
  rootOf,
} from '../../policy/files/decide-grant.ts'
import { absolute, canonicalize, isWithin, type PathWorld } from '../../policy/files/path.ts'

export interface GrantQuestion {
  readonly policy: GrantedPolicy
  readonly world: PathWorld
  readonly write: boolean
  /** As it was typed, for the person. */
  readonly shown: string
}

export function identify(text: string, question: GrantQuestion): Pick<FileGrant, 'path' | 'kind' | 'root'> {
  const { policy, world, write, shown } = question
  const refuse = (why: string, hint: string | undefined): never => {
    throw new PenError('PATH_REFUSED', {
      what: `${shown} cannot be granted: ${why}`,
      at: shown,
      ...(hint !== undefined && { hint }),
    })
  }
  const found = canonicalize(text, 'user', world)
  if (!found.ok) return refuse(found.why, isInProject(text, world) ? LINK_FIX : found.fix)
  const path = found.value
  const refused = checkGrantable(policy, world, { path, write })
  if (refused !== undefined) return refuse(refused.why, refused.fix)
  // Whoever could replace it would be started by the user's next command.
  const { run } = penPlaces(world.workspace)
  if (write && run.some(part => isWithin(part, path) || isWithin(path, part)))
    return refuse('pen itself is installed there', 'grant it for reading only, or install pen elsewhere')
  const { kind } = world.locate(path)
  if (kind === 'absent') return refuse('nothing stands there', 'make it first, or grant the directory above')
  if (kind === 'other') return refuse('it is neither a file nor a directory', 'name a file or a directory')
  const { dev, ino } = lstatSync(rootOf({ path, kind }), { bigint: true })
  return { path, kind, root: { dev, ino } }
}

const LINK_FIX = 'grant the place that it leads to, by its own path'

/** As it is written: what lies there may be a link that an agent made. */
function isInProject(text: string, world: PathWorld): boolean {
  const made = absolute(text, world)
  return made.ok && isWithin(made.value, world.workspace)
}

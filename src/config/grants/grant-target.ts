/** Resolves what a person typed to the granted path: canonical, grantable, and with the identity of its directory. */
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

interface GrantQuestion {
  readonly policy: GrantedPolicy
  readonly world: PathWorld
  readonly write: boolean
  /** The text as typed, for messages. */
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
  // A sandbox that can replace pen's files would run code with the user's next command.
  const { run } = penPlaces(world.workspace)
  if (write && run.some(part => isWithin(part, path) || isWithin(path, part)))
    return refuse('pen itself is installed there', 'grant it for reading only, or install pen elsewhere')
  const { kind } = world.locate(path)
  if (kind === 'absent')
    return refuse('it does not exist', 'create it first, or grant the directory above it')
  if (kind === 'unreachable')
    return refuse('you may not enter a directory on the way to it', 'grant a path that you may enter')
  if (kind === 'other') return refuse('it is neither a file nor a directory', 'name a file or a directory')
  const { dev, ino } = lstatSync(rootOf({ path, kind }), { bigint: true })
  return { path, kind, root: { dev, ino } }
}

const LINK_FIX = 'grant its target by its own path'

/** Checks the written path: an agent may have put a link there. */
function isInProject(text: string, world: PathWorld): boolean {
  const made = absolute(text, world)
  return made.ok && isWithin(made.value, world.workspace)
}

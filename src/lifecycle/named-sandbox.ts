/** Finds a sandbox by the name that `pen ls` shows. Without a name, finds that of the current project. */
import { PenError } from '../base/error.ts'
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { findProject } from '../config/project.ts'
import { listSandboxes, stateOfUser } from './list.ts'

export interface NamedSandbox {
  readonly id: string
  readonly stateDir: string
  /** Undefined for a sandbox that was configured but never started. */
  readonly workspace: string | undefined
  /** `~/.pen`. */
  readonly state: string
}

export async function sandboxNamed(name: string | undefined): Promise<NamedSandbox> {
  if (name === undefined) {
    const { id, stateDir, world } = findProject()
    return { id, stateDir, workspace: world.workspace, state: world.state }
  }
  const known = await listSandboxes({ repair: true })
  const exact = known.find(({ id }) => id === name)
  // The hash at the end may be left out if the name is unique.
  const alike = known.filter(({ id }) => id.slice(0, id.lastIndexOf('-')) === name)
  const found = exact ?? (alike.length === 1 ? alike[0] : undefined)
  if (found === undefined) throw unknown(name, alike.length > 1 ? alike : known)
  const { id, stateDir, workspace } = found
  return { id, stateDir, workspace, state: stateOfUser() }
}

function unknown(name: string, candidates: readonly { readonly id: string }[]): PenError {
  const ids = candidates.map(({ id }) => id)
  const meant = nearest(name, ids) ?? ids.find(id => id.startsWith(name))
  return new PenError('USAGE', {
    what: `there is no sandbox "${printable(name, 64)}", or more than one`,
    hint: meant === undefined ? 'pen ls' : `did you mean ${meant}? pen ls lists all`,
  })
}

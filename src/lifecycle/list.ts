/** Finds and lists the sandboxes of this user, running or not. Listing also repairs stale state. */
import { lstatSync, readdirSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { findHome, locate } from '../config/locate.ts'
import { findProject } from '../config/project.ts'
import { hasLeftovers, presenceOf, type SupervisorRecord } from '../control/state.ts'

export interface KnownSandbox {
  readonly id: string
  readonly stateDir: string
  readonly state: 'running' | 'changing' | 'stopped'
  /** The project directory. Undefined for a sandbox that was configured but never started. */
  readonly workspace: string | undefined
  readonly record: SupervisorRecord | undefined
  /** A dead supervisor had left a record or a socket, which were removed. */
  readonly repaired: boolean
}

/** The format of `sandboxId`. Any other name there is not a sandbox. */
const ID = /^[a-z0-9][a-z0-9-]{0,31}-[0-9a-f]{16}$/

export const stateOfUser = (): string => locate(`${findHome()}/.pen`).real

/** Root with another user's HOME would follow links of that user, who may be hostile. Only that user may remove the state. */
export function refuseStateOfOthers(): void {
  for (const path of [`${findHome()}/.pen`, stateOfUser()]) {
    const owner = lstatSync(path, { throwIfNoEntry: false })?.uid
    if (owner === undefined || owner === 0 || owner === process.geteuid?.()) continue
    throw new PenError('STATE', {
      what: `the state belongs to another user (uid ${owner}); nothing was removed`,
      at: path,
      hint: 'run it as that user, or set HOME to your home directory',
    })
  }
}

/** `repair: false` changes nothing, for a dry run. */
export async function listSandboxes(options: { readonly repair: boolean }): Promise<KnownSandbox[]> {
  const root = `${stateOfUser()}/sandboxes`
  const found: KnownSandbox[] = []
  for (const id of namesIn(root).filter(name => ID.test(name) && isDirectory(`${root}/${name}`))) {
    const stateDir = `${root}/${id}`
    const had = hasLeftovers(stateDir)
    const presence = await presenceOf(stateDir, options)
    const record = presence.is === 'present' ? presence.record : undefined
    found.push({
      id,
      stateDir,
      state: presence.is === 'absent' ? 'stopped' : record === undefined ? 'changing' : 'running',
      workspace: record?.workspace ?? workspaceOf(stateDir),
      record,
      repaired: had && presence.is === 'absent',
    })
  }
  return found
}

/** Empty for a directory that does not exist. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).sort()
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined) throw error
    if (errno === 'ENOENT') return []
    throw new PenError('STATE', {
      what: `cannot read a directory of pen's state (${errno})`,
      at: directory,
      hint: 'if it is yours: chmod u+rwx this path, then try again',
      cause: error,
    })
  }
}

const isDirectory = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

function workspaceOf(stateDir: string): string | undefined {
  try {
    return readRegularFile(`${stateDir}/workspace`, { maxBytes: 8192 })?.toString().trimEnd()
  } catch {
    return undefined
  }
}

interface NamedSandbox {
  readonly id: string
  readonly stateDir: string
  /** Undefined for a sandbox that was configured but never started. */
  readonly workspace: string | undefined
  /** `~/.pen`. */
  readonly state: string
}

/** The sandbox with a name that `pen ls` shows. Without a name, that of the current project. */
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

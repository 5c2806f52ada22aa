/** Finds and lists the sandboxes of this user, running or not. Listing also repairs stale state. */
import { lstatSync, readdirSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { nearest } from '../base/nearest.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { findHome, locate } from '../config/locate.ts'
import { named, namesOf, type Project } from '../config/project.ts'
import { hasLeftovers, presenceOf, type SupervisorRecord } from '../control/state.ts'
import type { HostPath } from '../policy/files/path.ts'

export interface KnownSandbox {
  readonly id: string
  /** Undefined for the sandbox of a project that has no name. */
  readonly name: string | undefined
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
    const shared = { id, stateDir: `${root}/${id}` as HostPath }
    found.push(await lookAt({ ...shared, name: undefined }, options))
    for (const name of namesOf(shared.stateDir)) found.push(await lookAt(named(shared, name), options))
  }
  return found
}

async function lookAt(
  { id, name, stateDir }: Pick<Project, 'id' | 'name' | 'stateDir'>,
  options: { readonly repair: boolean },
): Promise<KnownSandbox> {
  const had = hasLeftovers(stateDir)
  const presence = await presenceOf(stateDir, options)
  const record = presence.is === 'present' ? presence.record : undefined
  return {
    id,
    name,
    stateDir,
    state: presence.is === 'absent' ? 'stopped' : record === undefined ? 'changing' : 'running',
    workspace: record?.workspace ?? workspaceOf(stateDir),
    record,
    repaired: had && presence.is === 'absent',
  }
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

interface ChosenSandbox {
  readonly id: string
  readonly stateDir: string
  /** Undefined for a sandbox that was configured but never started. */
  readonly workspace: string | undefined
  /** `~/.pen`. */
  readonly state: string
}

/** The sandbox with an id that `pen ls` shows. Without one, that of the current project and `--name`. */
export async function chosenSandbox(
  given: string | undefined,
  here: { readonly project: Project; readonly name: string | undefined },
): Promise<ChosenSandbox> {
  if (given === undefined) {
    const { id, stateDir, world } = here.project
    return { id, stateDir, workspace: world.workspace, state: world.state }
  }
  if (here.name !== undefined)
    throw new PenError('USAGE', {
      what: `"${printable(given, 64)}" and --name ${printable(here.name, 64)} both choose a sandbox`,
      hint: 'remove one of them',
    })
  const known = await listSandboxes({ repair: true })
  const exact = known.find(({ id }) => id === given)
  // The hash at the end may be left out if the rest is unique.
  const alike = known.filter(({ id }) => id.slice(0, id.lastIndexOf('-')) === given)
  const found = exact ?? (alike.length === 1 ? alike[0] : undefined)
  if (found === undefined) throw unknown(given, alike.length > 1 ? alike : known)
  const { id, stateDir, workspace } = found
  return { id, stateDir, workspace, state: stateOfUser() }
}

function unknown(given: string, candidates: readonly KnownSandbox[]): PenError {
  if (candidates.some(({ name }) => name === given))
    return new PenError('USAGE', {
      what: `"${given}" is the name of a sandbox of one project, not an id`,
      hint: `--name ${given} in the directory of the project`,
    })
  const ids = candidates.map(({ id }) => id)
  const meant = nearest(given, ids) ?? ids.find(id => id.startsWith(given))
  return new PenError('USAGE', {
    what: `there is no sandbox "${printable(given, 64)}", or more than one`,
    hint: meant === undefined ? 'pen ls' : `did you mean ${meant}? pen ls lists all`,
  })
}

/** Lists every sandbox of this user, running or not. Listing also repairs stale state. */
import { lstatSync, readdirSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { findHome, locate } from '../config/locate.ts'
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

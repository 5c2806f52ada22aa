/** Every sandbox that this user's pen knows, running or not. What is stale is repaired by looking. */
import { lstatSync, readdirSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { findHome, locate } from '../config/locate.ts'
import { hasLeftovers, presenceOf, type SupervisorRecord } from '../control/state.ts'

export interface KnownSandbox {
  readonly id: string
  readonly stateDir: string
  readonly state: 'running' | 'changing' | 'stopped'
  /** The project's directory; undefined for one that was never started, only configured. */
  readonly workspace: string | undefined
  readonly record: SupervisorRecord | undefined
  /** A dead supervisor had left a record or a socket; they are gone now. */
  readonly repaired: boolean
}

/** As `sandboxId` makes them: whatever else somebody put there is not a sandbox. */
const ID = /^[a-z0-9][a-z0-9-]{0,31}-[0-9a-f]{16}$/

export const stateOfUser = (): string => locate(`${findHome()}/.pen`).real

/**
 * Root with the home of another user would follow the links of that user, who need not mean well. What is there is theirs to remove.
 */
export function refuseStateOfOthers(): void {
  for (const path of [`${findHome()}/.pen`, stateOfUser()]) {
    const owner = lstatSync(path, { throwIfNoEntry: false })?.uid
    if (owner === undefined || owner === 0 || owner === process.geteuid?.()) continue
    throw new PenError('STATE', {
      what: `the state there belongs to another user (${owner}); nothing was removed`,
      at: path,
      hint: 'let them do it, or set HOME to your own home directory',
    })
  }
}

/** `repair: false` leaves everything as it is, for a list of what would be done. */
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

/** None of one that is not there. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).sort()
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined) throw error
    if (errno === 'ENOENT') return []
    throw new PenError('STATE', {
      what: `a directory of pen's state cannot be read (${errno})`,
      at: directory,
      hint: 'if it is yours: chmod u+rwx, then try again',
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

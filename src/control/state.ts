/**
 * The state of a sandbox on disk: its supervisor's record, lock, socket and log. It is below `~/.pen/sandboxes/<id>`, belongs to the
 * user, and no sandbox sees it. A supervisor is alive while it holds its lock. The kernel releases the lock when the process dies, so
 * a reboot, a SIGKILL or a reused pid never looks like a supervisor.
 */
import { existsSync, lstatSync, rmSync, writeSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { isAlive, type ProcessIdentity, startTimeOf } from '../base/kernel/processes.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { type Lock, type LockWait, takeLock, tryLock } from '../config/lock.ts'
import { makeStateDirectory, SUPERVISOR_RECORD } from '../config/project.ts'

export const statePaths = (stateDir: string) => ({
  record: `${stateDir}/${SUPERVISOR_RECORD}`,
  control: `${stateDir}/control`,
  /** The supervisor holds this lock for its whole life. The file contains its pid and start time. */
  lock: `${stateDir}/supervisor.lock`,
  /** A command holds this lock while it starts, stops or removes the sandbox. */
  changing: `${stateDir}/changing.lock`,
  log: `${stateDir}/supervisor.log`,
})

/** Written when the sandbox is ready, removed when it ends. It is only for display: decisions use the lock. */
export interface SupervisorRecord {
  readonly pid: number
  readonly run: string
  readonly workspace: string
  readonly backend: string
  readonly isolation: string
  readonly image: string | null
  readonly since: string
}

export type Presence =
  | { readonly is: 'absent' }
  /** A supervisor holds the lock: the sandbox is starting, running or ending. */
  | {
      readonly is: 'present'
      readonly owner: ProcessIdentity | undefined
      readonly record: SupervisorRecord | undefined
    }

/** With `repair`, also removes the record and the socket of a dead supervisor. */
export async function presenceOf(
  stateDir: string,
  { repair }: { readonly repair: boolean } = { repair: true },
): Promise<Presence> {
  const places = statePaths(stateDir)
  for (let waited = 0; existsSync(places.lock) || hasLeftovers(stateDir); waited += POLL_MS) {
    const lock = tryLock(places.lock)
    if (lock !== undefined) {
      if (repair) removeRecordAndSocket(stateDir)
      lock.release()
      break
    }
    const owner = ownerIn(places.lock)
    // A killed process releases its lock when its last thread ends.
    if (owner === undefined || isAlive(owner) || waited > DYING_MS)
      return { is: 'present', owner, record: readRecord(stateDir) }
    await Bun.sleep(POLL_MS)
  }
  return { is: 'absent' }
}

const POLL_MS = 5
const DYING_MS = 1000

export const hasLeftovers = (stateDir: string): boolean => {
  const { record, control } = statePaths(stateDir)
  return existsSync(record) || existsSync(control)
}

/** The caller holds the supervisor's lock. */
export function removeRecordAndSocket(stateDir: string): void {
  const { record, control } = statePaths(stateDir)
  for (const path of [record, control]) rmSync(path, { force: true })
}

/** Makes this process the supervisor. Waits for a previous supervisor that is ending. */
export async function becomeSupervisor(stateDir: string): Promise<Lock> {
  const busy = 'another supervisor runs this sandbox'
  const lock = await takeLock(statePaths(stateDir).lock, { timeoutMs: 5000, busy })
  writeSync(lock.fd, `${process.pid} ${startTimeOf(process.pid) ?? '0'}\n`, 0)
  removeRecordAndSocket(stateDir)
  return lock
}

const CHANGING: LockWait = {
  timeoutMs: 180_000,
  busy: 'another pen command is starting, stopping or removing this sandbox',
}

/** Serializes changes: twenty starts at the same time make one sandbox. */
export async function withChangeLock<T>(stateDir: string, work: () => Promise<T>): Promise<T> {
  makeStateDir(stateDir)
  const lock = await takeLock(statePaths(stateDir).changing, CHANGING)
  try {
    return await work()
  } finally {
    lock.release()
  }
}

/** Another user must not be able to put a socket there: commands would talk to it. */
function makeStateDir(stateDir: string): void {
  makeStateDirectory(stateDir)
  const { uid, mode } = lstatSync(stateDir)
  if (uid === process.geteuid?.() && (mode & 0o022) === 0) return
  throw new PenError('STATE', {
    what: 'other users can write to the state directory of this sandbox',
    at: stateDir,
    hint: `check its owner; if it is yours: chmod 700 ${stateDir}`,
  })
}

export function writeRecord(stateDir: string, record: SupervisorRecord): void {
  writeFileAtomically(statePaths(stateDir).record, `${JSON.stringify({ version: 1, ...record })}\n`, {
    durable: false,
  })
}

const STRING_FIELDS = ['run', 'workspace', 'backend', 'isolation', 'since'] as const

/** Undefined also for a damaged record and for one of another version of pen. */
export function readRecord(stateDir: string): SupervisorRecord | undefined {
  try {
    const bytes = readRegularFile(statePaths(stateDir).record, { maxBytes: 65_536 })
    const value = JSON.parse(bytes?.toString() ?? 'null') as Record<string, unknown> | null
    if (value === null || value['version'] !== 1 || !Number.isInteger(value['pid'])) return undefined
    if (!STRING_FIELDS.every(key => typeof value[key] === 'string')) return undefined
    if (value['image'] !== null && typeof value['image'] !== 'string') return undefined
    return value as unknown as SupervisorRecord
  } catch {
    return undefined
  }
}

function ownerIn(lock: string): ProcessIdentity | undefined {
  try {
    const text = readRegularFile(lock, { maxBytes: 4096 })?.toString() ?? ''
    const [, pid, startTime] = /^(\d{1,10}) (\d+)\n/.exec(text) ?? []
    return pid === undefined || startTime === undefined ? undefined : { pid: Number(pid), startTime }
  } catch {
    return undefined
  }
}

/** Signals the supervisor only if the pid still belongs to it: the kernel may have reused the pid. */
export function signalSupervisor(owner: ProcessIdentity | undefined, signal: NodeJS.Signals): boolean {
  if (owner === undefined || !isAlive(owner)) return false
  try {
    process.kill(owner.pid, signal)
    return true
  } catch {
    return false
  }
}

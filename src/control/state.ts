/**
 * What is on disk of a sandbox that stays: who keeps it, and where it can be talked to. All of it is the user's own, below
 * `~/.pen/sandboxes/<id>`, which no sandbox ever sees. Whether a supervisor lives is not read from a file: it holds a lock, and the
 * kernel takes that back from whoever dies, so no reboot, SIGKILL or reused number is ever taken for a supervisor.
 */
import { existsSync, lstatSync, mkdirSync, rmSync, writeSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { type Lock, type Patience, takeLock, tryLock } from '../config/lock.ts'
import { KEEPER_RECORD } from '../config/project.ts'
import { isAlive, type Owner, startTimeOf } from '../limits/cgroup-name.ts'

export const placesOf = (stateDir: string) => ({
  record: `${stateDir}/${KEEPER_RECORD}`,
  /** The socket. */
  control: `${stateDir}/control`,
  /** Held by the supervisor from its first to its last moment; in it stands which process that is. */
  lock: `${stateDir}/supervisor.lock`,
  /** Held by whoever starts, ends or removes the sandbox, for as long as that takes. */
  changing: `${stateDir}/changing.lock`,
  log: `${stateDir}/supervisor.log`,
})

/** Written when the sandbox is ready, removed when it has ended. For people and lists: decisions ask the lock. */
export interface SupervisorRecord {
  readonly pid: number
  readonly startTime: string
  readonly run: string
  readonly workspace: string
  readonly backend: string
  readonly isolation: string
  readonly image: string | null
  readonly since: string
}

export type Presence =
  | { readonly is: 'absent' }
  /** Somebody holds the lock: it starts, runs or ends. */
  | { readonly is: 'kept'; readonly owner: Owner | undefined; readonly record: SupervisorRecord | undefined }

/** Looks, and takes away what a dead supervisor left: it needs no asking, because nobody can be using it. */
export async function presenceOf(
  stateDir: string,
  { repair }: { readonly repair: boolean } = { repair: true },
): Promise<Presence> {
  const places = placesOf(stateDir)
  for (let waited = 0; existsSync(places.lock) || hasLeftovers(stateDir); waited += LOOK_MS) {
    const lock = await tryLock(places.lock)
    if (lock !== undefined) {
      if (repair) clear(stateDir)
      lock.release()
      break
    }
    const owner = ownerIn(places.lock)
    // One that was just killed lets go of its lock with its last thread.
    if (owner === undefined || isAlive(owner) || waited > DYING_MS)
      return { is: 'kept', owner, record: readRecord(stateDir) }
    await Bun.sleep(LOOK_MS)
  }
  return { is: 'absent' }
}

const LOOK_MS = 5
const DYING_MS = 1000

export const hasLeftovers = (stateDir: string): boolean => {
  const { record, control } = placesOf(stateDir)
  return existsSync(record) || existsSync(control)
}

/** Only for whoever holds the supervisor's lock. */
export function clear(stateDir: string): void {
  const { record, control } = placesOf(stateDir)
  for (const path of [record, control]) rmSync(path, { force: true })
}

/** From now on this process is the supervisor. A predecessor that is just ending is waited for. */
export async function becomeSupervisor(stateDir: string): Promise<Lock> {
  const busy = 'another pen keeps this sandbox already'
  const lock = await takeLock(placesOf(stateDir).lock, { patienceMs: 5000, busy })
  writeSync(lock.fd, `${process.pid} ${startTimeOf(process.pid) ?? '0'}\n`, 0)
  clear(stateDir)
  return lock
}

const CHANGING: Patience = {
  patienceMs: 180_000,
  busy: 'another pen is starting, ending or removing this sandbox',
}

/** One at a time: twenty that start at once make one sandbox. */
export async function whileChanging<T>(stateDir: string, work: () => Promise<T>): Promise<T> {
  makeState(stateDir)
  const lock = await takeLock(placesOf(stateDir).changing, CHANGING)
  try {
    return await work()
  } finally {
    lock.release()
  }
}

/** Nobody else may put a socket there that a command would then talk to. */
function makeState(stateDir: string): void {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 })
    const { uid, mode } = lstatSync(stateDir)
    if (uid === process.geteuid?.() && (mode & 0o022) === 0) return
  } catch (error) {
    throw new PenError('STATE', {
      what: `the state of this sandbox cannot be kept (${errnoOf(error) ?? 'unknown error'})`,
      at: stateDir,
      hint: 'check that the directory above is yours and that the disk is not full',
      cause: error,
    })
  }
  throw new PenError('STATE', {
    what: 'others may write where the state of this sandbox is kept',
    at: stateDir,
    hint: `look whose it is; if it is yours: chmod 700 ${stateDir}`,
  })
}

export function writeRecord(stateDir: string, record: SupervisorRecord): void {
  writeFileAtomically(placesOf(stateDir).record, `${JSON.stringify({ version: 1, ...record })}\n`, {
    durable: false,
  })
}

const TEXTS = ['startTime', 'run', 'workspace', 'backend', 'isolation', 'since'] as const

/** Undefined also for one that another version of pen wrote, or a disk damaged: then it is not shown. */
export function readRecord(stateDir: string): SupervisorRecord | undefined {
  try {
    const bytes = readRegularFile(placesOf(stateDir).record, { maxBytes: 65_536 })
    const value = JSON.parse(bytes?.toString() ?? 'null') as Record<string, unknown> | null
    if (value === null || value['version'] !== 1 || !Number.isInteger(value['pid'])) return undefined
    if (!TEXTS.every(key => typeof value[key] === 'string')) return undefined
    if (value['image'] !== null && typeof value['image'] !== 'string') return undefined
    return value as unknown as SupervisorRecord
  } catch {
    return undefined
  }
}

function ownerIn(lock: string): Owner | undefined {
  const [, pid, startTime] = /^(\d{1,10}) (\d+)\n/.exec(quietly(lock)) ?? []
  return pid === undefined || startTime === undefined ? undefined : { pid: Number(pid), startTime }
}

function quietly(path: string): string {
  try {
    return readRegularFile(path, { maxBytes: 4096 })?.toString() ?? ''
  } catch {
    return ''
  }
}

/** A signal for the supervisor itself, whose number may belong to somebody else by now. */
export function signalSupervisor(owner: Owner | undefined, signal: NodeJS.Signals): boolean {
  if (owner === undefined || !isAlive(owner)) return false
  try {
    process.kill(owner.pid, signal)
    return true
  } catch {
    return false
  }
}

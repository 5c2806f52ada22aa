/**
 * Which protected places were absent when a run began, on disk. A run that was killed cannot look at them at its end: the next
 * run finds the record, and moves away what appeared. The kernel's lock on the file says whether its run is still there.
 */
import {
  closeSync,
  existsSync,
  futimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { openDirectory, withSpot } from '../base/beneath/beneath.ts'
import { Unseen } from '../base/beneath/look-at.ts'
import { isAlive, type ProcessIdentity, startTimeOf } from '../base/kernel/processes.ts'
import { type Lock, tryLock } from '../config/lock.ts'
import type { Watched } from '../survey/places.ts'
import type { QuarantineEvent } from './quarantine.ts'

const BEAT_MS = 5000
/** The processes of a killed run are gone this long after it, also on a busy machine. */
const GONE_MS = 2500

const POLL_MS = 5

interface WatchedRun {
  /** The pen of the run, then the first process of its sandbox. */
  readonly processes: readonly ProcessIdentity[]
  readonly watch: readonly Watched[]
}

const recordsIn = (stateDir: string): string => `${stateDir}/watching`

export class WatchRecord {
  readonly #lock: Lock | undefined
  readonly #timer: ReturnType<typeof setInterval>

  constructor(stateDir: string, run: string, watch: readonly Watched[], init: number | undefined) {
    mkdirSync(recordsIn(stateDir), { recursive: true, mode: 0o700 })
    const file = `${recordsIn(stateDir)}/${run}`
    this.#lock = tryLock(file)
    const pids = init === undefined ? [process.pid] : [process.pid, init]
    const processes = pids.map(pid => ({ pid, startTime: startTimeOf(pid) ?? '' }))
    const record: WatchedRun = { processes, watch }
    writeFileSync(file, JSON.stringify(record))
    this.#timer = setInterval(() => this.#beat(), BEAT_MS)
    this.#timer.unref()
  }

  /** The last look is done. */
  remove(): void {
    clearInterval(this.#timer)
    this.#lock?.release()
  }

  /** What is made later than the last beat of a killed run is not the sandbox's. */
  #beat(): void {
    const now = Date.now() / 1000
    // By descriptor: the name may be gone, and the run must not end for that.
    if (this.#lock !== undefined) futimesSync(this.#lock.fd, now, now)
  }
}

/**
 * Looks at the places of runs that were killed. `tell` gets what was moved, as at the end of a run. Returns a run that may have
 * made a repository in a project that had none.
 */
export async function sweepKilledRuns(
  stateDir: string,
  tell: (event: QuarantineEvent) => void,
): Promise<string | undefined> {
  const dir = recordsIn(stateDir)
  let maker: string | undefined
  if (!existsSync(dir)) return undefined
  for (const run of readdirSync(dir)) {
    const file = `${dir}/${run}`
    const { processes, watch } = readRecord(file)
    const lock = await lockKilled(file, processes)
    if (lock === undefined) continue
    const { birthtimeMs, mtimeMs } = statSync(file)
    const span = { begin: birthtimeMs, end: mtimeMs + BEAT_MS + GONE_MS }
    const { Quarantine } = await import('./quarantine.ts')
    const places = watch.filter(place => mayBeOf(span, place))
    await new Quarantine({ watch: places, dir: `${stateDir}/quarantine/${run}`, tell }).finish()
    if (places.some(({ path, rule }) => rule.kind === 'git-dir' && existsSync(path))) maker = run
    lock.release()
  }
  return maker
}

/**
 * False for what the user made after the run. Change times move when anything on the host touches a file or adds to a directory,
 * creation times do not, and a sandbox can set neither.
 */
function mayBeOf({ begin, end }: { begin: number; end: number }, { path, root }: Watched): boolean {
  const top = openDirectory(root)
  if (top === undefined) return true
  try {
    const isLater = withSpot(top, path.slice(root.length + 1).split('/'), ({ stats }) => {
      const born = Number(stats.birthtimeNs) / 1e6
      return Number(stats.ctimeNs) / 1e6 > end && !(born >= begin && born > 0 && born <= end)
    })
    return isLater !== true
  } catch (error) {
    if (!(error instanceof Unseen)) throw error
    return true
  } finally {
    closeSync(top)
  }
}

/**
 * Undefined while the run is there. A killed pen holds its lock until its last thread is gone, and the sandbox ends a moment later:
 * a sandbox that still runs could plant again after the look.
 */
async function lockKilled(file: string, processes: WatchedRun['processes']): Promise<Lock | undefined> {
  const [pen] = processes
  let lock = tryLock(file)
  if (lock === undefined && (pen === undefined || isAlive(pen))) return undefined
  const end = performance.now() + GONE_MS
  while ((lock === undefined || processes.some(isAlive)) && performance.now() < end) {
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
    lock ??= tryLock(file)
  }
  return lock
}

/** pen wrote it itself. A run that was killed at that moment had not begun. */
function readRecord(file: string): WatchedRun {
  try {
    const { processes, watch } = JSON.parse(readFileSync(file, 'utf8')) as Partial<WatchedRun>
    return { processes: processes ?? [], watch: watch ?? [] }
  } catch {
    return { processes: [], watch: [] }
  }
}

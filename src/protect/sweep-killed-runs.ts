/** Looks at the protected places of runs that were killed, or could not move everything, before the next run begins. */
import { closeSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { openDirectory, withSpot } from '../base/beneath/beneath.ts'
import { Unseen } from '../base/beneath/look-at.ts'
import { isAlive } from '../base/kernel/processes.ts'
import { dirname } from '../base/posix-path.ts'
import { type Lock, tryLock } from '../config/lock.ts'
import { NOTHING, type Watched } from '../survey/places.ts'
import { isUndone, Quarantine, type QuarantineEvent } from './quarantine.ts'
import {
  BEAT_MS,
  identityOf,
  MAX_STEP_MS,
  quarantineOf,
  recordsIn,
  removeIfEmpty,
  type WatchedRun,
} from './watch-record.ts'

/** The processes of a killed run are gone this long after it, also on a busy machine. */
const GONE_MS = 2500

const POLL_MS = 5
/** Equal times differ by rounding. */
const SLACK_MS = 1

/** `tell` gets what was moved, as at the end of a run. Returns a run that may have made a repository in a project that had none. */
export async function sweepKilledRuns(
  stateDir: string,
  tell: (event: QuarantineEvent, quarantine: string) => void,
): Promise<string | undefined> {
  const dir = recordsIn(stateDir)
  let maker: string | undefined
  if (!existsSync(dir)) return undefined
  for (const run of readdirSync(dir)) {
    const file = `${dir}/${run}`
    const lock = await lockKilled(file, readRecord(file).processes)
    if (lock === undefined) continue
    // Read again: the guard may have written to it.
    const record = readRecord(file)
    const end = endOf(file, record)
    const quarantine = quarantineOf(stateDir, run)
    const places = placesOf(record).filter(place => mayBeOf(end, place))
    let isDone: boolean = true
    await new Quarantine({
      watch: places,
      dir: quarantine,
      asides: record.asides,
      tell: event => {
        isDone &&= !isUndone(event)
        tell(event, quarantine)
      },
    }).finish()
    if (places.some(({ path, rule }) => rule.kind === 'git-dir' && existsSync(path))) maker = run
    removeIfEmpty(quarantine)
    if (isDone) lock.release()
    else closeSync(lock.fd)
  }
  return maker
}

/** Also where the run may have put things aside. Directories that were replaced since then are another project. */
function placesOf({ watch, roots, asides }: WatchedRun): readonly Watched[] {
  const same = watch.filter(({ root }) => identityOf(root) === roots[root])
  const parents = new Map(same.map(({ path, root }) => [dirname(path), root]))
  const renamed = [...parents].flatMap(([parent, root]) =>
    asides.map(name => ({ path: `${parent}/${name}`, root, rule: NOTHING })),
  )
  return [...same, ...renamed]
}

/**
 * When the last process of the sandbox was gone: as the guard saw it, or by the last beat. After the clock was set, everything
 * since the start may be the sandbox's.
 */
function endOf(file: string, { booted, endedAfter }: SeenRun): number {
  const { mtimeMs } = statSync(file)
  if (endedAfter === undefined) return mtimeMs === 0 ? Number.POSITIVE_INFINITY : mtimeMs + BEAT_MS + GONE_MS
  const isSteady = Math.abs(mtimeMs - endedAfter * 1000 - booted) <= MAX_STEP_MS
  return isSteady ? mtimeMs : Number.POSITIVE_INFINITY
}

/**
 * False for what the user made after the run. Only the creation time says that: a sandbox cannot set it, and the user's own
 * changes do not move it. Without one, it counts as the sandbox's.
 */
function mayBeOf(end: number, { path, root }: Watched): boolean {
  const top = openDirectory(root)
  if (top === undefined) return true
  try {
    const isLater = withSpot(
      top,
      path.slice(root.length + 1).split('/'),
      ({ stats }) => Number(stats.birthtimeNs) / 1e6 > end + SLACK_MS,
    )
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

interface SeenRun extends WatchedRun {
  /** The uptime in seconds when the sandbox had ended, if the guard or pen saw that. */
  readonly endedAfter: number | undefined
}

/** pen wrote it itself. A run that was killed at that moment had not begun. */
function readRecord(file: string): SeenRun {
  const none = { processes: [], watch: [], roots: {}, asides: [], booted: 0, endedAfter: undefined }
  try {
    const [text = '', end = ''] = readFileSync(file, 'utf8').split('\n')
    const [, seconds] = /^ended ([\d.]+)$/.exec(end) ?? []
    const watched = JSON.parse(text) as Partial<WatchedRun>
    return { ...none, ...watched, endedAfter: seconds === undefined ? undefined : Number(seconds) }
  } catch {
    return none
  }
}

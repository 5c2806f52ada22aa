/** Looks at the protected places of runs that were killed, or could not move everything, before the next run begins. */
import { closeSync, existsSync, readdirSync, statSync } from 'node:fs'
import { LIST, openDirectory, withAccess, withSpot } from '../base/beneath/beneath.ts'
import { directoryEntries } from '../base/beneath/directory-entries.ts'
import { Unseen } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { signal } from '../base/kernel/end-processes.ts'
import { isAlive } from '../base/kernel/processes.ts'
import { dirname } from '../base/posix-path.ts'
import { printable, shellWord } from '../base/printable.ts'
import { type Lock, tryLock } from '../config/lock.ts'
import { NOTHING, type Watched } from '../survey/places.ts'
import { readWatchRecord, recordsIn, type SeenRun, type WatchedRun } from '../survey/run-records.ts'
import { Quarantine } from './quarantine.ts'
import { isUndone, type QuarantineEvent } from './quarantine-event.ts'
import {
  ASIDE,
  BEAT_MS,
  identityOf,
  isAside,
  MAX_STEP_MS,
  quarantineOf,
  removeIfEmpty,
} from './watch-record.ts'

/** A killed pen and its sandbox are gone this long after it, also on a busy machine. */
const GONE_MS = 2500

const POLL_MS = 5
/** In one directory. pen makes fewer, and a sandbox can make any number of such names. */
const MOST_ASIDE = 1000
/** Equal times differ by rounding. */
const SLACK_MS = 1

/** A run that was killed, in a project that had no repository. It may have made one. */
export interface Maker {
  readonly run: string
  /** What is at `.git` now may be of its making. */
  readonly isThere: boolean
  /** Call it when the repository is adopted. Until then the record stays. */
  readonly done: () => void
  /** The record stays for a later start. */
  readonly keep: () => void
}

/** `tell` gets what was moved, as at the end of a run. */
export async function sweepKilledRuns(
  stateDir: string,
  tell: (event: QuarantineEvent) => void,
): Promise<readonly Maker[]> {
  const dir = recordsIn(stateDir)
  const makers: Maker[] = []
  if (!existsSync(dir)) return makers
  for (const run of readdirSync(dir)) {
    const file = `${dir}/${run}`
    const lock = await lockKilled(file, readWatchRecord(file).processes)
    if (lock === undefined) continue
    try {
      const maker = sweepRun(stateDir, run, lock, tell)
      if (maker !== undefined) makers.push(maker)
    } catch (error) {
      closeSync(lock.fd)
      throw error
    }
  }
  return makers
}

function sweepRun(
  stateDir: string,
  run: string,
  lock: Lock,
  tell: (event: QuarantineEvent) => void,
): Maker | undefined {
  const file = `${recordsIn(stateDir)}/${run}`
  // Read again: the guard may have written to it.
  const record = readWatchRecord(file)
  const end = endOf(file, record)
  const quarantine = quarantineOf(stateDir, run)
  const places = placesOf(record).filter(place => mayBeOf(end, place))
  let isDone: boolean = true
  new Quarantine({
    watch: places,
    dir: quarantine,
    tell: event => {
      isDone &&= !isUndone(event)
      tell(event)
    },
  }).finish()
  removeIfEmpty(quarantine)
  const keep = (): void => closeSync(lock.fd)
  const done = (): void => (isDone ? lock.release() : keep())
  const isThere = places.some(({ path, rule }) => rule.kind === 'git-dir' && existsSync(path))
  if (record.watch.some(({ rule }) => rule.kind === 'git-dir')) return { run, isThere, done, keep }
  done()
  return undefined
}

/** Also what the run put aside. Directories that were replaced since then are another project. */
function placesOf({ watch, roots }: WatchedRun): readonly Watched[] {
  const same = watch.filter(({ root }) => identityOf(root) === roots[root])
  const parents = new Map(same.map(({ path, root }) => [dirname(path), root]))
  const renamed = [...parents].flatMap(([parent, root]) =>
    asidesIn(parent, root).map(name => ({ path: `${parent}/${name}`, root, rule: NOTHING })),
  )
  return [...same, ...renamed]
}

/** Through no link, and also in a locked directory. */
function asidesIn(parent: string, root: string): string[] {
  const top = openDirectory(root)
  if (top === undefined) return []
  const list = (dir: number): string[] => {
    const names = withAccess(dir, LIST, () =>
      [...directoryEntries(dir)].map(({ name }) => name.toString()).filter(isAside),
    )
    if (names.length <= MOST_ASIDE) return names
    throw new PenError('PATH_REFUSED', {
      what: `a killed run left ${names.length} files under names for the quarantine, and pen looks at ${MOST_ASIDE}`,
      at: printable(parent, 1024),
      hint: `look at some, then remove them: find ${shellWord(parent) ?? 'DIRECTORY'} -maxdepth 1 -name '${ASIDE}*' -exec rm -r {} +`,
    })
  }
  try {
    if (parent === root) return list(top)
    const names = parent.slice(root.length + 1).split('/')
    return (
      withSpot(top, names, ({ fd, stats, depth }) =>
        stats.isDirectory() && depth === names.length ? list(fd) : [],
      ) ?? []
    )
  } catch (error) {
    // The places in it are reported as unseen.
    if (!(error instanceof Unseen)) throw error
    return []
  } finally {
    closeSync(top)
  }
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
 * Undefined while the run is there. A killed pen holds its lock until its last thread is gone, and the sandbox ends a moment later.
 * A sandbox that lives on is killed: it could plant again after the look. The record stays until it is gone.
 */
async function lockKilled(file: string, processes: WatchedRun['processes']): Promise<Lock | undefined> {
  const [pen, init] = processes
  let lock = tryLock(file)
  if (lock === undefined && (pen === undefined || isAlive(pen))) return undefined
  const end = performance.now() + GONE_MS
  while ((lock === undefined || processes.some(isAlive)) && performance.now() < end) {
    if (lock !== undefined && init !== undefined && isAlive(init)) signal(init.pid, 'SIGKILL')
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
    lock ??= tryLock(file)
  }
  if (lock === undefined || init === undefined || !isAlive(init)) return lock
  closeSync(lock.fd)
  throw new PenError('STATE', {
    what: `the sandbox of a killed run cannot be ended (process ${init.pid}), so pen cannot check the protected paths`,
    at: file,
    hint: `end it, then try again: sudo kill -9 ${init.pid}`,
  })
}

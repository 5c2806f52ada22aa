/** Reads the records of runs: of those that were killed, and of those that run beside this one. See `protect/watch-record.ts`. */
import { closeSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { isAlive, type ProcessIdentity } from '../base/kernel/processes.ts'
import { dirname } from '../base/posix-path.ts'
import { tryLock } from '../config/lock.ts'
import type { Watched } from './places.ts'

export interface WatchedRun {
  /** The pen of the run, then the first process of its sandbox, then the server of a guest's files. */
  readonly processes: readonly ProcessIdentity[]
  readonly watch: readonly Watched[]
  /** Each directory with a place: a new one at the same path is not the sandbox's. */
  readonly roots: Readonly<Record<string, string>>
  /** When the machine booted, by the clock of the start. A clock that was set later shows another time. */
  readonly booted: number
}

/** A place that was held, and was removed or replaced during the run. From then on it is watched. A line of its own. */
export interface Lost {
  readonly place: Watched
  /** The identity of its root. */
  readonly in: string
}

export const recordsIn = (stateDir: string): string => `${stateDir}/watching`

/** A name alone says nothing: a killed pen leaves it. */
export function isHeld(file: string): boolean {
  if (!existsSync(file)) return false
  const lock = tryLock(file)
  if (lock !== undefined) closeSync(lock.fd)
  return lock === undefined
}

/** What sandboxes of this project watch, or what a killed one watched: something of theirs may be there. */
export function watchedByRuns(stateDir: string, which: 'all' | 'running'): Watched[] {
  const dir = recordsIn(stateDir)
  const files = existsSync(dir) ? readdirSync(dir).map(run => `${dir}/${run}`) : []
  return files
    .filter(file => which === 'all' || isHeld(file))
    .flatMap(file => [...readWatchRecord(file).watch])
}

/** Processes of the other sandboxes of this user that run, also of other projects: those may have this directory too. */
export function neighboursOf(stateDir: string, mine: string): number[] {
  const all = dirname(stateDir)
  const records = readdirSync(all).flatMap(id => {
    const dir = recordsIn(`${all}/${id}`)
    return existsSync(dir) ? readdirSync(dir).map(run => ({ run, file: `${dir}/${run}` })) : []
  })
  return records.flatMap(({ run, file }) => {
    if (run === mine || !isHeld(file)) return []
    const [, ...inside] = readWatchRecord(file).processes
    return inside.filter(isAlive).map(({ pid }) => pid)
  })
}

export interface SeenRun extends WatchedRun {
  /** The uptime in seconds when the sandbox had ended, if the guard or pen saw that. */
  readonly endedAfter: number | undefined
}

/** pen wrote it itself. A run that was killed at that moment had not begun. */
export function readWatchRecord(file: string): SeenRun {
  const none = { processes: [], watch: [], roots: {}, booted: 0, endedAfter: undefined }
  try {
    const [text = '', ...lines] = readFileSync(file, 'utf8').split('\n')
    const run = { ...none, ...(JSON.parse(text) as Partial<WatchedRun>) }
    const lost = lines.flatMap(lostIn)
    // On a full disk it may stand behind half a line.
    const [, seconds] = /ended ([\d.]+)$/m.exec(lines.join('\n')) ?? []
    return {
      ...run,
      watch: [...run.watch, ...lost.map(({ place }) => place)],
      roots: { ...Object.fromEntries(lost.map(({ place, in: root }) => [place.root, root])), ...run.roots },
      endedAfter: seconds === undefined ? undefined : Number(seconds),
    }
  } catch {
    return none
  }
}

function lostIn(line: string): Lost[] {
  try {
    return line.startsWith('{') ? [JSON.parse(line) as Lost] : []
  } catch {
    return []
  }
}

/**
 * Which protected places were absent when a run began, on disk. A run that was killed cannot look at them at its end: the next
 * run finds the record, and moves away what appeared. The kernel's lock on the file says whether its run is still there.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { type Lock, tryLock } from '../config/lock.ts'
import type { Watched } from '../survey/places.ts'
import type { QuarantineEvent } from './quarantine.ts'

const BEAT_MS = 5000

const recordsIn = (stateDir: string): string => `${stateDir}/watching`

export class WatchRecord {
  readonly #lock: Lock | undefined
  readonly #file: string
  readonly #timer: ReturnType<typeof setInterval>

  constructor(stateDir: string, run: string, watch: readonly Watched[]) {
    mkdirSync(recordsIn(stateDir), { recursive: true, mode: 0o700 })
    this.#file = `${recordsIn(stateDir)}/${run}`
    this.#lock = tryLock(this.#file)
    writeFileSync(this.#file, JSON.stringify(watch))
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
    utimesSync(this.#file, now, now)
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
    const lock = tryLock(file)
    if (lock === undefined) continue
    const watch = readRecord(file)
    const end = statSync(file).mtimeMs + BEAT_MS
    const { Quarantine } = await import('./quarantine.ts')
    const places = watch.filter(
      ({ path }) => (lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0) <= end,
    )
    await new Quarantine({ watch: places, dir: `${stateDir}/quarantine/${run}`, tell }).finish()
    if (places.some(({ path, rule }) => rule.kind === 'git-dir' && existsSync(path))) maker = run
    lock.release()
  }
  return maker
}

/** pen wrote it itself. A run that was killed at that moment had not begun. */
function readRecord(file: string): readonly Watched[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as readonly Watched[]
  } catch {
    return []
  }
}

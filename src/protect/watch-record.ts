/**
 * Which protected places were absent when a run began, on disk. A run that was killed cannot look at them at its end: the next
 * run finds the record, and moves away what appeared (see sweep-killed-runs.ts). The kernel's lock on the file says whether its
 * run is still there. This file is on the launch path.
 */
import {
  closeSync,
  futimesSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeSync,
} from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { startTimeOf } from '../base/kernel/processes.ts'
import { writeAll } from '../base/write-all.ts'
import { type Lock, takeLock } from '../config/lock.ts'
import type { Watched } from '../survey/places.ts'
import { isHeld, type Lost, recordsIn, type WatchedRun } from '../survey/run-records.ts'

/** Another pen may look at the record in the moment in which it is made. */
const LOCK_MS = 2500
/** How often a run says that it is there, for the case that nothing sees its end. */
export const BEAT_MS = 5000
/** A clock that was set shows by a difference larger than this. */
export const MAX_STEP_MS = 1000

export const ASIDE = '.pen-quarantine-'
const ASIDE_NAME = /^\.pen-quarantine-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** A name that no program reads, for what cannot be moved. Made when it is used: no process can take it before. */
export const asideName = (): string => `${ASIDE}${crypto.randomUUID()}`
export const isAside = (name: string): boolean => ASIDE_NAME.test(name)

/** Locked while the host's git makes a repository in the project, and while protected files are accepted. */
export const adoptingIn = (stateDir: string): string => `${stateDir}/adopting.lock`
export const quarantineOf = (stateDir: string, run: string): string => `${stateDir}/quarantine/${run}`

/** In seconds, also while the machine slept. */
const uptime = (): number => Number.parseFloat(readFileSync('/proc/uptime', 'latin1'))
const bootTime = (): number => Date.now() - uptime() * 1000

/** No device number: those of some file systems change with each boot. */
export function identityOf(dir: string): string | undefined {
  const stats = statSync(dir, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? undefined : `${stats.ino} ${stats.birthtimeNs}`
}

/** Made before the sandbox starts, with the directory for what is moved: a full disk must not prevent that. */
export class WatchRecord {
  readonly quarantine: string
  /** Open for appending. The guard writes a line into it when it has ended the sandbox of a killed pen. */
  readonly witness: number
  readonly #lock: Lock
  #state: 'empty' | 'written' | 'ended' | 'closed' = 'empty'
  #timer: ReturnType<typeof setInterval> | undefined
  #booted = 0

  static async open(stateDir: string, run: string): Promise<WatchRecord> {
    mkdirSync(recordsIn(stateDir), { recursive: true, mode: 0o700 })
    const file = `${recordsIn(stateDir)}/${run}`
    const lock = await takeLock(file, { timeoutMs: LOCK_MS, busy: 'another pen has the record of this run' })
    if (isHeld(adoptingIn(stateDir))) {
      lock.release()
      throw new PenError('STATE', {
        what: 'another pen makes the repository of this project, or accepts protected files; a sandbox could change them meanwhile',
        hint: 'repeat the command',
      })
    }
    mkdirSync(quarantineOf(stateDir, run), { recursive: true, mode: 0o700 })
    return new WatchRecord(lock, openSync(file, 'a'), quarantineOf(stateDir, run))
  }

  private constructor(lock: Lock, witness: number, quarantine: string) {
    this.#lock = lock
    this.witness = witness
    this.quarantine = quarantine
  }

  /** Before the command begins. */
  write(watch: readonly Watched[], inside: readonly (number | undefined)[]): void {
    const processes = [process.pid, ...inside].flatMap(pid =>
      pid === undefined ? [] : [{ pid, startTime: startTimeOf(pid) ?? '' }],
    )
    const roots = Object.fromEntries(
      [...new Set(watch.map(({ root }) => root))].map(root => [root, identityOf(root) ?? '']),
    )
    const booted = bootTime()
    this.#booted = booted
    const watched: WatchedRun = { processes, watch, roots, booted }
    writeAll(this.#lock.fd, `${JSON.stringify(watched)}\n`)
    this.#state = 'written'
    this.#timer = setInterval(() => this.#beat(), BEAT_MS)
    this.#timer.unref()
  }

  /** The sandbox has ended. What appears from now on is not of its making. */
  ended(): void {
    if (this.#state === 'written') this.#sayEnded()
  }

  /** False when it could not be written. */
  lose({ path, root, rule }: Watched): boolean {
    try {
      const lost: Lost = { place: { path, root, rule }, in: identityOf(root) ?? '' }
      writeAll(this.witness, `${JSON.stringify(lost)}\n`)
      this.#beat()
      return true
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
      return false
    }
  }

  /** The last look is done. The record stays while something is left in the project: each start looks again. */
  finish(isClean: boolean): void {
    if (this.#state === 'closed') return
    clearInterval(this.#timer)
    removeIfEmpty(this.quarantine)
    if (!isClean) this.ended()
    this.#state = 'closed'
    closeSync(this.witness)
    if (isClean) this.#lock.release()
    else closeSync(this.#lock.fd)
  }

  /** For a run that failed. If its command may have begun, the next start looks. */
  abandon(): void {
    this.finish(this.#state === 'empty')
  }

  /** After the clock was set, no time of this run says anything. */
  #beat(): void {
    const now = Math.abs(bootTime() - this.#booted) > MAX_STEP_MS ? 0 : Date.now() / 1000
    // By descriptor: the name may be gone, and the run must not end for that.
    futimesSync(this.#lock.fd, now, now)
    if (now === 0) clearInterval(this.#timer)
  }

  /** On a full disk the last beat counts. */
  #sayEnded(): void {
    clearInterval(this.#timer)
    this.#state = 'ended'
    try {
      writeSync(this.witness, `ended ${uptime()}\n`)
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
    }
  }
}

export function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir)
  } catch (error) {
    if (!['ENOTEMPTY', 'ENOENT'].includes(errnoOf(error) ?? '')) throw error
  }
}

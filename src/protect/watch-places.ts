/**
 * Guards protected and denied places while a sandbox runs. One watch of directories and one timer drive the quarantine and the
 * remounts. An event is only a hint to look now: every look compares the whole list with what is there. When a look comes too
 * late, the sandbox is paused until it is done, and ended when it takes too long.
 */
import type { AuditEventInput } from '../audit/event.ts'
import type { Running } from '../backend/backend.ts'
import { isNoSpace } from '../base/beneath/tree.ts'
import type { Loaded } from '../config/load.ts'
import { hostServices } from '../survey/host-services.ts'
import { ListingCache } from '../survey/listing-cache.ts'
import type { Surveyed } from '../survey/survey.ts'
import { DeniedPlaces } from './denied-places.ts'
import { DirectoryWatch } from './directory-watch.ts'
import { isUndone, type Moved, Quarantine, type QuarantineEvent } from './quarantine.ts'
import { type HoldEvent, LOOK_MS, Remount } from './remount.ts'
import { PlaceReport, STUCK, TOO_SLOW } from './report.ts'
import { sweepKilledRuns } from './sweep-killed-runs.ts'
import type { WatchRecord } from './watch-record.ts'

export interface WatchOptions {
  readonly loaded: Loaded
  readonly facts: Surveyed
  readonly running: Running
  readonly watchRecord: WatchRecord
  /** Pauses the sandbox as far as that is possible. */
  readonly whilePaused: (act: () => Promise<void>) => Promise<void>
  readonly tell: (line: string) => void
  readonly record: (event: AuditEventInput) => void
}

/** Shorter runs need no watch. */
const START_AFTER_MS = 20
/** Looks take at most this part of the time, so that a sandbox that plants all day does not stop the supervisor. */
const SHARE = 20
/** A look that takes longer in all ends the run: nothing that pauses a sandbox is certain to hold it. */
const CATCH_UP_MS = 5000

export class PlaceWatch {
  readonly #options: WatchOptions
  readonly #report: PlaceReport
  readonly #quarantine: Quarantine
  readonly #remount: Remount | undefined
  readonly #watch: DirectoryWatch
  readonly #begin: ReturnType<typeof setTimeout>
  #timer: ReturnType<typeof setInterval> | undefined
  #soon: ReturnType<typeof setTimeout> | undefined
  #notBefore = 0
  #catchingUp: Promise<void> | undefined
  #life: 'running' | 'ended' = 'running'
  #isClean: boolean = true

  constructor(options: WatchOptions) {
    const { loaded, facts, running, watchRecord, tell } = options
    const { watch, protect, git } = facts.repository
    this.#options = options
    this.#report = new PlaceReport(tell)
    // A sandbox without mounts writes the host's repository, and a new one stays as it is.
    const recorded = watch.filter(({ rule }) => rule.kind !== 'git-dir' || running.sharesHost !== true)
    watchRecord.write(recorded, running.initPid())
    this.#quarantine = new Quarantine({
      watch,
      held: protect,
      dir: watchRecord.quarantine,
      asides: watchRecord.asides,
      tell: event => this.#onEvent(event),
    })
    const roots = loaded.policy.files.read.map(({ rule }) => rule.path)
    if (running.mounts !== undefined)
      this.#remount = new Remount({
        mounts: running.mounts,
        denied: deniedPlaces(loaded, git?.path),
        services: () => hostServices(roots, roots).paths,
        covered: facts.denied.length,
        held: protect.map(({ path }) => path),
        onEvent: event => this.#onHold(event),
        onDirectories: () => this.#setWatch(),
        onAttempt: path => this.#report.attempt(path),
        onFlood: why => this.#end(`denied: ${why}; the sandbox was ended`),
      })
    this.#watch = new DirectoryWatch({
      appeared: (dir, name) => {
        this.#remount?.appeared(dir, name)
        if (this.#quarantine.concerns(dir, name)) this.#lookSoon()
      },
      doubt: () => {
        this.#remount?.lookAtAll()
        this.#lookSoon()
      },
      lost: () => this.#catchUp(),
    })
    this.#begin = setTimeout(() => this.#start(), START_AFTER_MS)
  }

  /** The last look, after every process of the sandbox is gone, so nothing can race it. */
  async finish(): Promise<void> {
    const { watchRecord } = this.#options
    this.#life = 'ended'
    clearTimeout(this.#begin)
    clearTimeout(this.#soon)
    clearInterval(this.#timer)
    await this.#watch.close()
    await this.#remount?.stop()
    await this.#catchingUp
    await this.#quarantine.finish()
    this.#report.finish(watchRecord.quarantine)
    watchRecord.finish(this.#isClean)
  }

  #start(): void {
    this.#remount?.start()
    this.#look()
    this.#timer = setInterval(() => {
      this.#look()
      this.#remount?.look()
      if (this.#remount?.isBehind) this.#catchUp()
    }, LOOK_MS)
    this.#timer.unref()
  }

  #lookSoon(): void {
    if (this.#life === 'ended') return
    this.#soon ??= setTimeout(
      () => this.#look(),
      Math.max(0, Math.min(LOOK_MS, this.#notBefore - performance.now())),
    )
  }

  #look(): void {
    clearTimeout(this.#soon)
    this.#soon = undefined
    const began = performance.now()
    // The watch comes first: what appears after it is an event.
    this.#setWatch()
    this.#quarantine.sweep()
    const now = performance.now()
    this.#notBefore = now + SHARE * (now - began)
  }

  #setWatch(): void {
    this.#watch.set(new Set([...this.#quarantine.directories(), ...(this.#remount?.directories() ?? [])]))
  }

  /** Looks at everything, while the sandbox is paused as far as that is possible. */
  #catchUp(): void {
    if (this.#life === 'ended' || this.#catchingUp !== undefined) return
    const end = performance.now() + CATCH_UP_MS
    const tooSlow = setTimeout(() => this.#end(TOO_SLOW), CATCH_UP_MS)
    const look = async (): Promise<void> => {
      this.#look()
      await this.#remount?.catchUp(end)
    }
    this.#catchingUp = this.#options
      .whilePaused(look)
      // The kernel refused to freeze or to thaw the sandbox.
      .catch(() => this.#end(TOO_SLOW))
      .finally(() => {
        if (performance.now() < end) clearTimeout(tooSlow)
        this.#catchingUp = undefined
      })
  }

  #end(why: string): void {
    if (this.#life === 'ended') return
    this.#report.say(why)
    this.#options.running.kill()
  }

  #onEvent(event: QuarantineEvent): void {
    this.#isClean &&= !isUndone(event)
    this.#report.event(event)
    if (event.kind === 'moved') this.#options.record(quarantineRecord(event))
    // Aside, a thing does no harm. On a full disk it may be the last that could be renamed.
    if (event.kind === 'stuck' && (event.aside === undefined || isNoSpace(event.why))) this.#end(STUCK)
  }

  #onHold(event: HoldEvent): void {
    const reason = typeof event.result === 'string' ? undefined : event.result.failed
    this.#report.holdEvent(event)
    this.#options.record({
      kind: 'place-held',
      path: event.path,
      how: event.how,
      held: reason === undefined,
      reason,
    })
    if (event.how === 'protect' && reason === undefined) this.#quarantine.hold(event.path)
  }
}

const quarantineRecord = ({ path, what, to, restored }: Moved) => ({
  kind: 'quarantine' as const,
  path,
  reason: what,
  to,
  restored,
})

/**
 * Before the host is surveyed: what a killed run left at a protected place would count as the user's. Returns a run that may
 * have made a repository.
 */
export async function sweepAfterKill(
  stateDir: string,
  tell: (line: string) => void,
  record: (event: AuditEventInput) => void,
): Promise<string | undefined> {
  return await sweepKilledRuns(stateDir, (event, quarantine) => {
    const report = new PlaceReport(tell)
    report.event(event)
    report.finish(quarantine)
    if (event.kind === 'moved') record(quarantineRecord(event))
  })
}

function deniedPlaces({ policy, project }: Loaded, git: string | undefined): DeniedPlaces {
  const roots = policy.files.read.map(({ rule }) => rule.path as string)
  const cache = new ListingCache({ file: `${project.stateDir}/listings.json`, save: () => {} })
  return new DeniedPlaces(policy, roots, (dir, component) => cache.matching(dir, component), git)
}

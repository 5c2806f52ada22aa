/**
 * Guards protected and denied places while a sandbox runs. One watch of directories and one timer drive the quarantine and the
 * remounts. An event is only a hint to look now: every look compares the whole list with what is there. When a look comes too
 * late, the sandbox is paused until it is done, and ended when it takes too long.
 */
import type { AuditEventInput } from '../audit/event.ts'
import type { Running } from '../backend/backend.ts'
import { lookAt, Unseen } from '../base/beneath/look-at.ts'
import { isNoSpace } from '../base/beneath/tree.ts'
import type { Loaded } from '../config/load.ts'
import { isWithin } from '../policy/files/path.ts'
import { hostServices } from '../survey/host-services.ts'
import { ListingCache } from '../survey/listing-cache.ts'
import { MountedPlaces } from '../survey/mounted-places.ts'
import { type Held, NOTHING, type Watched } from '../survey/places.ts'
import type { Surveyed } from '../survey/survey.ts'
import { closedFile } from './closed-file.ts'
import { DeniedPlaces } from './denied-places.ts'
import { DirectoryWatch } from './directory-watch.ts'
import { Quarantine } from './quarantine.ts'
import { isUndone, type Moved, type QuarantineEvent } from './quarantine-event.ts'
import { type HoldEvent, LOOK_MS, Remount } from './remount.ts'
import { Repeats } from './repeats.ts'
import { ownLost, PlaceReport, rootLost, STUCK, TOO_OFTEN, TOO_SLOW } from './report.ts'
import { type Maker, sweepKilledRuns } from './sweep-killed-runs.ts'
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
  /** The sandbox must end. The user has the reason as a line already. */
  readonly onEnd: (why: string) => void
}

/** Shorter runs need no watch. */
const START_AFTER_MS = 20
/** Looks take at most this part of the time, so that a sandbox that plants all day does not stop the supervisor. */
const SHARE = 20
/** A look that takes longer in all ends the run: nothing that pauses a sandbox is certain to hold it. */
const CATCH_UP_MS = 5000
const MAX_WRITES = 5

export class PlaceWatch {
  readonly #options: WatchOptions
  readonly #report: PlaceReport
  readonly #quarantine: Quarantine
  readonly #repeats = new Repeats()
  /** Files whose content is judged, that were written in place. git does not do that. */
  readonly #writes = new Repeats(MAX_WRITES)
  readonly #remount: Remount | undefined
  readonly #watch: DirectoryWatch
  /** Where the sandbox has a directory of its own in place of the host's. */
  readonly #own: ReadonlySet<string>
  /** Directories with a place. The paths of places lead elsewhere when one is moved. */
  readonly #roots: MountedPlaces
  readonly #begin: ReturnType<typeof setTimeout>
  #timer: ReturnType<typeof setInterval> | undefined
  #soon: ReturnType<typeof setTimeout> | undefined
  #notBefore = 0
  #eagerUntil = 0
  #catchingUp: Promise<void> | undefined
  /** One pause at a time. */
  #paused: Promise<unknown> = Promise.resolve()
  #life: 'running' | 'ending' | 'ended' = 'running'
  #isClean: boolean = true

  constructor(options: WatchOptions) {
    const { loaded, facts, running, watchRecord, tell } = options
    const { watch, protect, git } = facts.repository
    this.#options = options
    this.#report = new PlaceReport(tell)
    // A sandbox without mounts writes the host's repository, and a new one stays as it is.
    const recorded = watch.filter(({ rule }) => rule.kind !== 'git-dir' || running.sharesHost !== true)
    watchRecord.write(recorded, [running.initPid(), running.filesPid?.()])
    const hasMounts = running.mounts !== undefined
    const { workspace } = loaded.policy
    // In a review layer nothing of the host's is at stake, and its edits end no mount.
    const layered = facts.layer === undefined ? undefined : workspace
    const own = hasMounts && layered === undefined ? ownDirectories(facts, workspace) : []
    this.#own = new Set(own.map(({ path }) => path))
    this.#quarantine = new Quarantine({
      watch,
      held: [...protect.filter(({ path }) => layered === undefined || !isWithin(path, layered)), ...own],
      hasMounts,
      dir: watchRecord.quarantine,
      tell: event => this.#onEvent(event),
      onLost: place => this.#onLost(place),
    })
    const roots = loaded.policy.files.read.map(({ rule }) => rule.path)
    const denied = deniedPlaces(loaded, git?.path)
    this.#roots = new MountedPlaces(loaded.policy.workspace, [
      ...new Set([...watch, ...protect].map(({ root }) => root).concat(denied.roots)),
    ])
    if (running.mounts !== undefined)
      this.#remount = new Remount({
        mounts: running.mounts,
        denied,
        layered,
        services: () => hostServices(roots, roots).paths,
        covered: facts.denied.length,
        held: () => this.#quarantine.held(),
        onEvent: event => this.#onHold(event),
        onDirectories: () => this.#setWatch(),
        onFlood: why => this.#end(`denied: ${why}; the sandbox was ended`),
      })
    const doubt = (): void => {
      this.#remount?.lookAtAll()
      this.#lookSoon()
    }
    this.#watch = new DirectoryWatch({
      appeared: (dir, name) => {
        this.#remount?.appeared(dir, name)
        if (this.#quarantine.concerns(dir, name)) this.#lookSoon()
      },
      written: (dir, name) => {
        const place = this.#quarantine.judged(dir, name)
        if (place === undefined) return
        if (this.#writes.isTooOften(place)) this.#end(TOO_OFTEN)
        this.#lookSoon()
      },
      left: (dir, _id, how) => {
        if (how === 'moved') this.#remount?.moved(dir)
        doubt()
      },
      doubt,
      lost: () => this.#catchUp(),
    })
    this.#begin = setTimeout(() => this.#start(), START_AFTER_MS)
  }

  /** After `finish`: nothing of the sandbox is left at a protected place. */
  get isClean(): boolean {
    return this.#isClean
  }

  /** The last look, after every process of the sandbox is gone, so nothing can race it. The caller then closes the record. */
  async finish(): Promise<void> {
    const { watchRecord } = this.#options
    this.#life = 'ended'
    watchRecord.ended()
    clearTimeout(this.#begin)
    clearTimeout(this.#soon)
    clearInterval(this.#timer)
    await this.#watch.close()
    await this.#remount?.stop()
    await this.#catchingUp
    this.#quarantine.finish()
    this.#report.finish()
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
      // Twice the wait at most, and no moment of which a sandbox can be sure.
      Math.max(0, Math.min(LOOK_MS, 2 * Math.random() * (this.#notBefore - performance.now()))),
    )
  }

  #look(): void {
    clearTimeout(this.#soon)
    this.#soon = undefined
    const began = performance.now()
    const [lost] = this.#roots.replaced()
    if (lost !== undefined) this.#end(rootLost(lost))
    // The watch comes first: what appears after it is an event.
    this.#setWatch()
    const hasMoved = this.#quarantine.sweep().some(({ kind }) => kind === 'moved' || kind === 'stuck')
    const now = performance.now()
    if (hasMoved) this.#eagerUntil = now + LOOK_MS
    // After a move there is no delay, also when an old event led to a look that found nothing.
    this.#notBefore = now < this.#eagerUntil ? 0 : now + SHARE * (now - began)
  }

  #setWatch(): void {
    const dirs = new Set([...this.#quarantine.directories(), ...(this.#remount?.directories() ?? [])])
    this.#watch.set(dirs, this.#quarantine.judgedIn())
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
    this.#catchingUp = this.#whilePaused(look)
      // The kernel refused to freeze or to thaw the sandbox.
      .catch(() => this.#end(TOO_SLOW))
      .finally(() => {
        if (performance.now() < end) clearTimeout(tooSlow)
        this.#catchingUp = undefined
      })
  }

  async #whilePaused(act: () => Promise<void>): Promise<void> {
    const mine = this.#paused.then(() => this.#options.whilePaused(act))
    this.#paused = mine.catch(() => undefined)
    await mine
  }

  #end(why: string): void {
    if (this.#life !== 'running') return
    this.#life = 'ending'
    this.#options.tell(why)
    this.#options.onEnd(why)
  }

  #onEvent(event: QuarantineEvent): void {
    this.#isClean &&= !isUndone(event)
    this.#report.event(event)
    if (event.kind === 'moved') this.#options.record(quarantineRecord(event))
    if ((event.kind === 'moved' || event.kind === 'stuck') && this.#repeats.isTooOften(event.path))
      this.#end(TOO_OFTEN)
    // Aside, a thing does no harm. On a full disk it may be the last that could be renamed. The user's must not stay there.
    if (event.kind !== 'stuck') return
    if (event.aside === undefined || event.mayBeUsers === true || isNoSpace(event.why)) this.#end(STUCK)
  }

  #onLost(place: Watched): void {
    if (!this.#options.watchRecord.lose(place)) this.#end(STUCK)
    else if (this.#own.has(place.path)) this.#end(ownLost(place.path))
  }

  #onHold(event: HoldEvent): void {
    const reason = typeof event.result === 'string' ? undefined : event.result.failed
    this.#options.record({
      kind: 'place-held',
      path: event.path,
      how: event.how,
      held: reason === undefined,
      reason,
    })
    // Some places are both denied and protected.
    const isHeld = event.how === 'protect' || this.#quarantine.held().includes(event.path)
    if (isHeld && reason === undefined) void this.#holdAgain(event)
    else this.#report.holdEvent(event)
  }

  async #holdAgain(event: HoldEvent): Promise<void> {
    const { running } = this.#options
    const paused = (act: () => Promise<void>) => this.#whilePaused(act)
    const closed = await closedFile(event.path, running, paused).catch(() => undefined)
    if (this.#life === 'ended') return
    try {
      const stays = this.#quarantine.hold(event.path, closed)
      if (stays || event.how === 'cover') this.#report.holdEvent(event)
    } catch (error) {
      // Unseen: the next look sees it, or ends the run.
      if (!(error instanceof Unseen)) throw error
    }
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
 * Before the host is surveyed: what a killed run left at a protected place would count as the user's. Returns runs that may
 * have made a repository.
 */
export async function sweepAfterKill(
  stateDir: string,
  tell: (line: string) => void,
  record: (event: AuditEventInput) => void,
): Promise<readonly Maker[]> {
  const report = new PlaceReport(tell)
  const makers = await sweepKilledRuns(stateDir, event => {
    report.event(event)
    if (event.kind === 'moved') record(quarantineRecord(event))
  })
  report.finish()
  return makers
}

/** The sandbox's git directory and empty modules are mounts on directories of the host. Without the host's, there is no mount. */
function ownDirectories({ repository }: Surveyed, workspace: string): Held[] {
  const { git, emptyModules } = repository
  return [...(git === undefined ? [] : [git.path]), ...emptyModules].flatMap((path): Held[] => {
    const stats = path !== workspace && isWithin(path, workspace) ? lookAt(path) : undefined
    if (stats === undefined) return []
    const { dev, ino, birthtimeNs: born } = stats
    return [{ path, root: workspace, rule: NOTHING, type: 'dir', dev, ino, born }]
  })
}

function deniedPlaces({ policy, project }: Loaded, git: string | undefined): DeniedPlaces {
  const roots = policy.files.read.map(({ rule }) => rule.path as string)
  const cache = new ListingCache({ file: `${project.stateDir}/listings.json`, save: () => {} })
  return new DeniedPlaces(policy, roots, (dir, component) => cache.matching(dir, component), git)
}

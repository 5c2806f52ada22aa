/**
 * Keeps denied and protected places so while a sandbox runs. A new file that matches a deny rule is covered by a mount in the
 * running sandbox. So is a protected file that the host replaces by a rename, which ends its mount.
 */
import type { HoldRequest, HoldResult, LiveMounts } from '../backend/backend.ts'
import { lookOrUnseen } from '../base/beneath/look-at.ts'
import { printable } from '../base/printable.ts'
import { isWithin } from '../policy/files/path.ts'
import type { DeniedPlaces, Judged } from './denied-places.ts'
import { Exposed, MAX_TRIES } from './exposed.ts'
import { TOO_MANY } from './tree-watch.ts'

export interface HoldEvent {
  readonly how: HoldRequest['how']
  readonly path: string
  readonly result: Exclude<HoldResult, 'changed'>
}

export interface RemountOptions {
  readonly mounts: LiveMounts
  readonly denied: DeniedPlaces
  /** The project, when the sandbox sees it through a review layer. */
  readonly layered?: string | undefined
  /** Current sockets of host services. A server that starts may add or replace one. */
  readonly services?: () => readonly string[]
  /** How many denied places were covered at the start. */
  readonly covered: number
  /** Protected places that are mounted, or are to be mounted again. */
  readonly held: () => readonly string[]
  readonly onEvent: (event: HoldEvent) => void
  /** Called when `directories` may have changed. */
  readonly onDirectories?: () => void
  /** The deny rules can no longer be enforced, such as when the sandbox makes more denied files than pen can cover. */
  readonly onFlood: (why: string) => void
}

/** How often `look` is called. */
export const LOOK_MS = 250
/** Delay while a tree is being built, and after a file was swapped during a mount. */
const RETRY_MS = 5
const MAX_RETRY_MS = 320
/** Denied files made during one run. An honest program makes fewer. */
const MAX_NEW = 1000
/** Mounts during one run, under any names. */
const MAX_COVERS = 20_000
/** How long the end of a sandbox waits for mounts in progress. */
const LAST_ANSWER_MS = 1000
/** A survey that takes long is made less often: one twentieth of the time at most. */
const SURVEY_SHARE = 20
/** After this long the sandbox is paused until everything is held. */
const BEHIND_MS = 600
/** A denied name that appeared this long ago is covered, or the sandbox is paused. */
const FRESH_MS = 1000

export class Remount {
  readonly #options: RemountOptions
  readonly #heldIn = new Map<string, Set<string>>()
  readonly #seen: Exposed
  /** Already reported as not covered. */
  readonly #told = new Set<string>()
  #places = new Set<string>()
  /** Directories that may have changed since the last look. */
  #doubtful = new Set<string>()
  /** Directories, the last denied name that appeared in each, and when. */
  readonly #fresh = new Map<string, { readonly path: string; readonly at: number }>()
  #services: readonly string[] = []
  #covers = 0
  #states = ''
  #survey: 'due' | 'made' = 'made'
  #unseen: boolean = false
  #surveyAfter = 0
  #retryMs = RETRY_MS
  #life: 'open' | 'closed' = 'open'
  #holding: Promise<void> | undefined
  #work: 'idle' | 'busy' | 'busy, and more to do' = 'idle'
  /** Since when something waits to be surveyed or mounted. */
  #dueSince: number | undefined
  /** No mount before it: the last ones failed. */
  #later: ReturnType<typeof setTimeout> | undefined
  /** Only the survey waits for it. What is known is mounted. */
  #surveyLater: ReturnType<typeof setTimeout> | undefined

  constructor(options: RemountOptions) {
    this.#options = options
    this.#seen = new Exposed(options.mounts, options.layered)
    for (const path of options.held()) {
      const [dir, name] = split(path)
      this.#heldIn.set(dir, (this.#heldIn.get(dir) ?? new Set()).add(name))
    }
    // Lists nothing yet, because many runs are short.
    options.denied.begin()
    options.denied.openTree(judged => {
      this.#take(judged)
      if (judged !== 'nothing') this.#hold()
    }, options.onFlood)
  }

  /** Watches the tree for globs at any depth. Other directories are watched by the caller, see `directories`. */
  start(): void {
    this.#options.denied.watchTree()
  }

  /** Directories in which a new name matters; as of the last survey. */
  directories(): Iterable<string> {
    return [...this.#heldIn.keys(), ...this.#options.denied.directories.keys()]
  }

  /** True when something has waited too long for a mount. */
  get isBehind(): boolean {
    return this.#dueSince !== undefined && performance.now() - this.#dueSince > BEHIND_MS
  }

  /** Surveys at once, and mounts until everything is held, or until `end` (of `performance.now()`). */
  async catchUp(end: number): Promise<void> {
    while (!this.#isClosed() && performance.now() < end) {
      if (this.#work !== 'idle') await this.#holding
      else if (!this.#options.mounts.ready()) await Bun.sleep(RETRY_MS)
      else {
        this.#makeSurvey()
        const requests = this.#exposed()
        this.#dueSince = requests.length === 0 && !this.#isBlind ? undefined : this.#dueSince
        if (this.#dueSince === undefined) return
        if (requests.length === 0) await Bun.sleep(RETRY_MS)
        else {
          this.#holding = this.#holdThese(requests)
          await this.#holding
        }
      }
    }
  }

  /** Called when every process of the sandbox is gone. Waits for pending answers, so that they are reported too. */
  async stop(): Promise<void> {
    this.#life = 'closed'
    clearTimeout(this.#later)
    clearTimeout(this.#surveyLater)
    if (this.#work !== 'idle') await Promise.race([this.#holding, Bun.sleep(LAST_ANSWER_MS)])
    this.#options.mounts.close()
    await this.#options.denied.close()
  }

  /** The name is hostile: it is only compared. */
  appeared(dir: string, name: string): void {
    const { denied } = this.#options
    const judged = denied.judge(dir, name)
    this.#take(judged)
    if (denied.isInNamed(dir, name)) this.#fresh.set(dir, { path: `${dir}/${name}`, at: performance.now() })
    if (judged !== 'nothing' || this.#heldIn.get(dir)?.has(name)) this.#hold()
  }

  /** A directory was moved. What the host wrote to it a moment ago may be readable by its new name: nothing looks there. */
  moved(dir: string): void {
    for (const [at, fresh] of this.#fresh)
      if (performance.now() - fresh.at > FRESH_MS) this.#fresh.delete(at)
      else if (isWithin(at, dir))
        this.#options.onFlood(
          `${printable(fresh.path, 200)} was moved with its directory as soon as it appeared`,
        )
  }

  #take(judged: Judged): void {
    if (judged === 'survey') this.#survey = 'due'
    else if (judged !== 'nothing') {
      this.#places.add(judged.place)
      this.#doubtful.add(judged.place)
    }
  }

  lookAtAll(): void {
    this.#survey = 'due'
    this.#hold()
  }

  look(): void {
    if (this.#states !== this.#stateOfAll()) this.#survey = 'due'
    this.#services = this.#options.services?.() ?? []
    for (const path of this.#services) this.#doubtful.add(path)
    this.#hold()
  }

  /** Compares change times of directories. One that changed a moment ago may change again with the same timestamp. */
  #stateOfAll(settledBefore = Number.POSITIVE_INFINITY): string {
    const state = (dir: string): string => {
      const stats = lookOrUnseen(dir)
      if (stats === 'unseen') return 'unsettled'
      if (stats === undefined) return '-'
      if (Number(stats.ctimeNs / 1_000_000n) >= settledBefore) return 'unsettled'
      return `${stats.ino}:${stats.ctimeNs}:${stats.mtimeNs}`
    }
    const { directories, version } = this.#options.denied
    return [version, ...[...directories.keys()].map(state)].join(' ')
  }

  #makeSurvey(): void {
    const { denied } = this.#options
    const settledBefore = Date.now() - LOOK_MS
    this.#survey = 'made'
    this.#places = new Set(denied.survey())
    this.#doubtful = new Set([...this.#places, ...this.#services])
    this.#options.onDirectories?.()
    this.#states = this.#stateOfAll(settledBefore)
    if (denied.overflows !== undefined) this.#options.onFlood(denied.overflows)
    for (const [path, failed] of denied.uncovered) {
      if (this.#told.has(path)) continue
      this.#told.add(path)
      this.#options.onEvent({ how: 'cover', path, result: { failed } })
    }
    if (this.#told.size > MAX_NEW) this.#options.onFlood(TOO_MANY)
  }

  /** Mounts what is known, and makes the survey that is due when its time has come. */
  #hold(): void {
    if (this.#life === 'closed' || this.#later !== undefined) return
    if (this.#work !== 'idle') {
      this.#work = 'busy, and more to do'
      return
    }
    if (!this.#options.mounts.ready()) {
      this.#holdLater(RETRY_MS)
      return
    }
    const began = performance.now()
    // What is known comes first: a survey of many names takes long.
    let requests = this.#exposed()
    if (requests.length === 0 && this.#survey === 'due' && began >= this.#surveyAfter) {
      this.#makeSurvey()
      requests = this.#exposed()
      this.#surveyAfter = began + SURVEY_SHARE * (performance.now() - began)
    }
    if (this.#isBlind) this.#survey = 'due'
    const isDone = requests.length === 0 && this.#survey !== 'due'
    this.#dueSince = isDone ? undefined : (this.#dueSince ?? began)
    if (requests.length > 0) this.#holding = this.#holdThese(requests)
    else if (this.#survey === 'due')
      this.#surveyLater ??= setTimeout(
        () => {
          this.#surveyLater = undefined
          this.#hold()
        },
        Math.max(RETRY_MS, this.#surveyAfter - began),
      )
  }

  /** One batch at a time. New requests go into the next batch. */
  async #holdThese(requests: readonly HoldRequest[]): Promise<void> {
    this.#work = 'busy'
    const results = await this.#options.mounts.hold(requests)
    const more = this.#work !== ('busy' as string)
    this.#work = 'idle'
    // When the sandbox has ended, the remaining mounts fail, and that is not reported.
    const counts = (result: HoldResult): boolean => result === 'held' || !this.#isClosed()
    for (const [i, request] of requests.entries()) {
      const result = results[i] ?? 'changed'
      if (counts(result)) this.#settle(request, result)
    }
    if (this.#isClosed()) return
    if (this.#places.size > this.#options.covered + MAX_NEW || this.#covers > MAX_COVERS)
      this.#options.onFlood(TOO_MANY)
    const done = results.includes('held')
    // Files that appear and vanish cost a process each time. So wait longer after each.
    this.#retryMs = done ? RETRY_MS : Math.min(MAX_RETRY_MS, this.#retryMs * 2)
    if (!done) this.#holdLater(this.#retryMs)
    else if (more || this.#survey === 'due') this.#hold()
  }

  #isClosed = (): boolean => this.#life === 'closed'

  #holdLater(ms: number): void {
    this.#later ??= setTimeout(() => {
      this.#later = undefined
      this.#hold()
    }, ms)
  }

  /** There is a denied place that pen could not look at, or lost sight of. */
  get #isBlind(): boolean {
    return this.#unseen || this.#options.denied.unknown > 0
  }

  /** Whether the sandbox sees the host's file at a denied place, or no mount at a protected one. */
  #exposed(): HoldRequest[] {
    const out: HoldRequest[] = []
    const doubtful = new Set<string>()
    this.#unseen = false
    for (const path of this.#doubtful) {
      const found = this.#seen.look('cover', path)
      if (found !== undefined) doubtful.add(path)
      this.#unseen ||= found === 'unseen'
      if (typeof found === 'object') out.push(found)
    }
    this.#doubtful = doubtful
    for (const path of this.#options.held()) {
      const found = this.#seen.look('protect', path)
      if (typeof found === 'object') out.push(found)
    }
    return out
  }

  #settle({ how, path }: HoldRequest, result: HoldResult): void {
    if (result === 'changed') return
    const failures = this.#seen.count(path, result)
    if (result === 'held' && how === 'cover') this.#covers++
    this.#options.onEvent({ how, path, result })
    // A sandbox may cause this: it takes every process that its user may start.
    if (failures === MAX_TRIES && how === 'cover')
      this.#options.onFlood(`${printable(path, 200)} could not be covered`)
  }
}

const split = (path: string): [string, string] => {
  const slash = path.lastIndexOf('/')
  return [path.slice(0, slash), path.slice(slash + 1)]
}

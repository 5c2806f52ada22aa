/**
 * The sandbox's own repository, from the start of a run to its end. In pen's state, `git/<name>/dir` is mounted and hostile;
 * `synced` and `seen` beside it are pen's own records. This file is on the launch path: copying and syncing are loaded when
 * they are needed.
 */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs'
import { isRunId } from '../audit/segment-name.ts'
import { Unseen } from '../base/beneath/look-at.ts'
import { removeTree } from '../base/beneath/remove-tree.ts'
import { errnoOf } from '../base/error.ts'
import { phase } from '../base/phases.ts'
import { basename } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'
import { type Lock, takeLock, tryLock } from '../config/lock.ts'
import { emptyModule } from '../plan/git-steps.ts'
import type { HostPath } from '../policy/files/path.ts'
import { looksLikeGitDir } from '../survey/git/directory.ts'
import { MountedPlaces } from '../survey/mounted-places.ts'
import { filesOfTools } from './copy/files-of-tools.ts'
import { bothFingerprints, fingerprintOfRefs, IN_PART } from './copy/fingerprint.ts'
import { isGitDirectory } from './copy/is-git-directory.ts'
import type { Pinned } from './copy/pin-tips.ts'
import { leftInside } from './submodules/left-inside.ts'
import type { RefEvent } from './sync/repository-sync.ts'
import type { SyncAllOptions, SyncResult } from './sync-all.ts'

/** A moved ref is on the other side within a second. */
const LOOK_MS = 400
/** Busy repositories are synced less and less often, so that a sandbox cannot fill the host's repository. */
const FULL_SPEED_SYNCS = 100
const MOST_WAIT_MS = 60_000
const LOCKS = ['index.lock', 'HEAD.lock', 'packed-refs.lock', 'config.lock']
/** The place of a sandbox that stays. A run has its own, or takes over one that is free. */
export const STAYS = 'stays'
/** The place of a review layer. It does not sync: `pen accept` brings its commits. */
export const REVIEW = 'review'
export const isOfReview = (entry: string): boolean => entry.endsWith(`/${REVIEW}`)

export interface OwnOptions extends Omit<SyncAllOptions, 'entry' | 'dir' | 'record'> {
  /** Submodules without a checkout. */
  readonly emptyModules: readonly string[]
  /** Paths of the host that get a mount in the sandbox: `.git`, and those of submodules. */
  readonly mounted: readonly string[]
}

export class OwnRepository {
  /** The directory to mount. */
  readonly dir: HostPath
  /** As it was before the mounts. */
  readonly mounted: MountedPlaces
  readonly #options: OwnOptions
  readonly #entry: string
  readonly #lock: Lock
  readonly #places: readonly string[]
  readonly #isReview: boolean
  /** In a review: refs and HEAD when the run began. */
  #before = ''
  readonly #lines: string[] = []
  #seen = ''
  /** `clean`: a copy of the host's repository in which nothing was changed. */
  #kind: 'clean' | 'kept' = 'kept'
  #result: SyncResult | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #working: Promise<void> = Promise.resolve()
  #count = 0
  /** Before the audit is open, events wait. Each is recorded once. */
  readonly #events: RefEvent[] = []
  readonly #told = new Set<string>()
  #record = (event: RefEvent): void => void this.#events.push(event)
  #isOpen: boolean = true
  /** `left`: a run that was killed may have made it. */
  #pin: 'absent' | 'left' | 'made' = 'absent'

  /** Takes over what an earlier run left unfinished, or makes a copy of the host's repository. */
  static async open(options: OwnOptions, name: string): Promise<OwnRepository> {
    const top = `${options.world.sandbox.stateDir}/git`
    mkdirSync(top, { recursive: true, mode: 0o700 })
    const entries = readdirSync(top).filter(entry => entry !== REVIEW)
    const left = entries.filter(entry => existsSync(`${top}/${entry}/synced`))
    for (const entry of entries)
      if (isRunId(entry) && !left.includes(entry)) removeUnfinished(`${top}/${entry}`)
    // A sandbox that stays has one place: its container may have been requested with it already.
    const isTaken = name === STAYS && existsSync(`${top}/${STAYS}`)
    for (const entry of isTaken || name === REVIEW ? [name] : [...left, name]) {
      const lock = tryLock(`${top}/${entry}.lock`)
      if (lock === undefined) continue
      if (name === STAYS && entry !== STAYS) {
        // A run that was killed may have left it, and the name of the pin is lost with the next line.
        await (await import('./copy/pin-tips.ts')).removePin(pinnedBy(options, `${top}/${entry}`))
        renameSync(`${top}/${entry}`, `${top}/${STAYS}`)
        lock.release()
        return await OwnRepository.open(options, name)
      }
      const own = new OwnRepository(options, `${top}/${entry}`, lock)
      await own.#prepare()
      if (own.#isReview) own.#before = fingerprintOfRefs(own.dir, own.#places)
      for (const path of options.emptyModules)
        mkdirSync(emptyModule(own.dir, path), { recursive: true, mode: 0o700 })
      phase('git directory ready')
      return own
    }
    throw new Error(`another sandbox uses ${top}/${name}`)
  }

  private constructor(options: OwnOptions, entry: string, lock: Lock) {
    this.#options = options
    this.#entry = entry
    this.#lock = lock
    this.#isReview = isOfReview(entry)
    this.dir = `${entry}/dir` as HostPath
    const below = options.git.submodules.map(({ path }) => path.slice(options.git.path.length + 1))
    this.#places = [...options.records, ...below]
    this.mounted = new MountedPlaces(options.workspace, options.mounted)
  }

  /** Syncs whenever refs, HEAD or index changed on either side. `record` throws when the audit cannot be written. */
  watch(record: (event: RefEvent) => void): void {
    this.#record = record
    for (const event of this.#events.splice(0)) record(event)
    this.#wait()
  }

  #wait(): void {
    const wait = Math.min(MOST_WAIT_MS, LOOK_MS * Math.max(1, this.#count - FULL_SPEED_SYNCS))
    this.#timer = setTimeout(() => {
      this.#working = this.#turn().finally(() => {
        if (this.#isOpen && !this.#isReview) this.#wait()
      })
    }, wait)
    this.#timer.unref()
  }

  async #turn(): Promise<void> {
    // A run that is shorter than this needs no pin.
    if (this.#pin !== 'made')
      await (await import('./copy/pin-tips.ts')).pinTips(pinnedBy(this.#options, this.#entry))
    this.#pin = 'made'
    if (this.#isReview) clearTimeout(this.#timer)
    else if (this.#look() !== this.#seen) await this.#sync()
  }

  /** After the last process of the sandbox. Returns lines for the user. */
  async finish(): Promise<readonly string[]> {
    const isOpen = this.#isOpen
    this.#isOpen = false
    clearTimeout(this.#timer)
    await this.#working
    if (this.#isReview) return await this.#finishReview()
    if (this.#pin !== 'absent' && this.mounted.replaced().length === 0)
      await (await import('./copy/pin-tips.ts')).removePin(pinnedBy(this.#options, this.#entry))
    // The user's git may have locked the index for a moment.
    await this.#unlock()
    const isSeen = this.#look() === this.#seen && !this.#seen.includes(IN_PART)
    // What kept the last sync from the host may be over.
    if (this.#result?.isComplete === false || !isSeen) await this.#sync()
    this.#seen = this.#look()
    this.#isOpen = isOpen
    const left = leftInside(this.#options, this.dir)
    if (left !== undefined) {
      const { hasFailed = false, lines = [] } = this.#result ?? {}
      this.#result = { isComplete: false, hasFailed, lines: [...lines, left] }
    }
    const tools = filesOfTools(this.dir, this.#places)
    if (this.#result !== undefined && tools.length > 0) this.#lines.push(keptForTools(tools, this.dir))
    if (this.#result?.isComplete && tools.length === 0) {
      this.#lines.push(...(await import('./adopt/take-repository.ts')).keepAdopted(this.#entry))
      // A `pen git import` may be at work. Then the next start finds nothing new.
      const lock = tryLock(`${this.#entry}.sync`)
      if (lock !== undefined) await this.#remove()
      lock?.release()
    }
    // After a failure the next start syncs again.
    else if (!this.#result?.hasFailed)
      writeFileSync(
        `${this.#entry}/seen`,
        `${this.#result === undefined && tools.length === 0 ? this.#kind : 'kept'}\n${this.#seen}`,
      )
    this.close()
    return [...this.#lines, ...(this.#result?.lines ?? [])]
  }

  /** The pin stays with the layer: the sandbox's commits borrow the host's objects until they are accepted. */
  async #finishReview(): Promise<readonly string[]> {
    const isClean = this.#kind === 'clean' && fingerprintOfRefs(this.dir, this.#places) === this.#before
    if (isClean && this.#pin !== 'absent')
      await (await import('./copy/pin-tips.ts')).removePin(pinnedBy(this.#options, this.#entry))
    writeFileSync(`${this.#entry}/seen`, `${isClean ? 'clean' : 'kept'}\n${this.#look()}`)
    this.#lock.release()
    return this.#lines
  }

  /** Without its list of refs, what is left of it when pen is killed here does not count as a copy. */
  async #remove(): Promise<void> {
    rmSync(`${this.#entry}/synced`)
    if (basename(this.#entry) !== STAYS) removeTree(this.#entry)
    else (await import('./copy/make-own-directory.ts')).emptyEntry(this.#entry)
  }

  /** What is not on the host, as of the last sync. Lines for the user. */
  pending(): readonly string[] {
    return this.#result?.lines ?? []
  }

  /** Stops watching. The directory stays for the next run, unless `finish` removed it. */
  close(): void {
    clearTimeout(this.#timer)
    if (this.#isOpen) this.#lock.release()
    this.#isOpen = false
  }

  /**
   * A directory serves again as it is, while neither repository changed since the last look. Otherwise a plain copy is made
   * again, and one with something in it is synced.
   */
  async #prepare(): Promise<void> {
    const file = `${this.#entry}/seen`
    if (existsSync(`${this.#entry}/synced`)) {
      if (!existsSync(file)) this.#pin = 'left'
      chmodSync(this.dir, 0o700)
      if (!isGitDirectory(this.dir)) await this.#setAside('was damaged')
      else await this.#addSubmodules()
    } else if (this.#isReview) {
      // Of a layer that was accepted or discarded.
      this.#pin = 'left'
    }
    const [kind, seen] = existsSync(file) ? readFileSync(file, 'utf8').split(/\n(.*)/s) : []
    rmSync(file, { force: true })
    this.#kind = kind === 'clean' ? 'clean' : 'kept'
    if (this.#kind === 'kept' && existsSync(`${this.#entry}/synced`)) await this.#unlock()
    this.#seen = this.#look()
    if (seen === this.#seen && !this.#seen.includes(IN_PART)) return
    if (this.#kind === 'clean' || !existsSync(`${this.#entry}/synced`)) await this.#copy()
    else {
      const { isReadable, lacksCommits } = await import('./sync-all.ts')
      // The host's objects are borrowed: the user may have pruned them, or made a new repository at the same place.
      const [canRead, lacks] = await Promise.all(
        [isReadable, lacksCommits].map(ask => ask({ ...this.#options, entry: this.#entry }, this.dir)),
      )
      if (canRead && !lacks) return this.#isReview ? undefined : await this.#sync()
      await this.#setAside(canRead ? 'needs commits that the host has no more' : 'could not be read')
      await this.#copy()
    }
  }

  /** The user may have added some since the directory was made, and a sandbox may have removed some. */
  async #addSubmodules(): Promise<void> {
    const { git } = this.#options
    for (const submodule of git.submodules) {
      const below = submodule.path.slice(git.path.length)
      if (lookAt(`${this.dir}${below}`) !== undefined) continue
      const { addSubmodule } = await import('./copy/make-own-directory.ts')
      addSubmodule(submodule, below, this.dir, `${this.#entry}/synced`)
    }
  }

  /** No process of a sandbox uses the directory now: a lock is of a git that was killed. */
  async #unlock(): Promise<void> {
    chmodSync(this.dir, 0o700)
    const isLocked = this.#places.some(place =>
      LOCKS.some(name => lookAt(`${this.dir}/${place}/${name}`) !== undefined),
    )
    if (isLocked) await (await import('./sync-all.ts')).removeLocks(this.#options, this.dir)
  }

  /** `rm -rf .git` inside must not leave the project without git. */
  async #setAside(why: string): Promise<void> {
    const { putAside } = await import('./copy/put-aside.ts')
    const left = await putAside(this.#entry, this.#options.git.path)
    for (const name of ['synced', 'seen']) rmSync(`${this.#entry}/${name}`, { force: true })
    this.#lines.push(`git: the sandbox's git directory ${why}, and this run got a new copy; ${left}`)
  }

  async #copy(): Promise<void> {
    const { emptyEntry, makeOwnDirectory } = await import('./copy/make-own-directory.ts')
    using _lock = await this.#lockSync()
    emptyEntry(this.#entry)
    makeOwnDirectory(this.#options.git, this.dir, `${this.#entry}/synced`)
    this.#kind = 'clean'
    this.#seen = this.#look()
  }

  /** A `pen git import` may be at work. */
  async #lockSync(): Promise<Disposable> {
    const lock = await takeLock(`${this.#entry}.sync`, {
      timeoutMs: 60_000,
      busy: 'another pen syncs this repository',
    })
    return { [Symbol.dispose]: () => lock.release() }
  }

  #look(): string {
    return bothFingerprints(this.dir, this.#options.git.path, this.#places)
  }

  async #sync(): Promise<void> {
    this.#count++
    // What changes during the sync is seen by the next look. So each change is followed by one sync that finds nothing.
    this.#seen = this.#look()
    // The sandbox may have written it. The host's git must not open it before the user has seen that.
    const { path } = this.#options.git
    const isGone = isNoRepository(path)
    if (isGone || this.mounted.replaced().length > 0) {
      const why = isGone ? `${printable(path, 500)} is no repository any more: ` : ''
      const lines = [
        `git: ${why}nothing was taken over from the sandbox; its repository is kept at ${this.dir}`,
      ]
      this.#result = { isComplete: false, hasFailed: true, lines }
      return
    }
    const { syncAll } = await import('./sync-all.ts')
    const record = (event: RefEvent): void => {
      const text = JSON.stringify(event)
      if (!this.#told.has(text)) this.#record(event)
      this.#told.add(text)
    }
    this.#result = await syncAll({ ...this.#options, entry: this.#entry, dir: this.dir, record })
  }
}

const pinnedBy = ({ git, world }: OwnOptions, entry: string): Pinned => ({
  gitDir: git.path,
  sandbox: world.sandbox.id,
  entry,
})

const keptForTools = (names: readonly string[], dir: string): string =>
  `git: ${printable(names.join(', '), 500)} is of another tool than git and does not cross to the host: it is kept in ${dir}, and the next run has it`

/** A run that was killed while it made the copy left it. A repository that was adopted is not a copy. */
function removeUnfinished(entry: string): void {
  const lock = tryLock(`${entry}.lock`)
  if (lock === undefined) return
  const isUnfinished = !['synced', 'adopted'].some(name => existsSync(`${entry}/${name}`))
  if (isUnfinished) removeTree(entry)
  lock.release()
}

/** False also when the sandbox locked the project: a later start takes its commits over. */
function isNoRepository(dir: string): boolean {
  try {
    return !looksLikeGitDir(dir)
  } catch (error) {
    if (!(error instanceof Unseen)) throw error
    return false
  }
}

/** Undefined also when a sandbox made it unreadable. */
function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

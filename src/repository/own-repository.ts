/**
 * The sandbox's own repository, from the start of a run to its end. Its directory lies in pen's state:
 * `git/<name>/dir` is mounted and hostile, `git/<name>/synced` is pen's own record.
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import type { BoxWorld } from '../backend/box.ts'
import { removeTree } from '../base/beneath/remove-tree.ts'
import { printable } from '../base/printable.ts'
import { type Lock, tryLock } from '../config/lock.ts'
import type { GitDirectory } from '../plan/facts.ts'
import { emptyModule } from '../plan/git-steps.ts'
import type { HostPath } from '../policy/files/path.ts'
import { readGitConfig } from '../survey/git/directory.ts'
import { describeReport } from './describe-sync.ts'
import { fingerprint } from './fingerprint.ts'
import { GitBox } from './git-box.ts'
import { guardedPaths } from './guarded-paths.ts'
import { HostGit } from './host-git.ts'
import { makeOwnDirectory, syncedFile } from './make-own-directory.ts'
import { RepositorySync, type SyncReport } from './repository-sync.ts'
import { readSynced, writeSynced } from './synced-file.ts'

/** A moved ref is on the other side within a second. */
const LOOK_MS = 400

export interface OwnOptions {
  readonly git: GitDirectory
  /** Records of worktrees that lie in the project; `.` unless the project is a linked worktree itself. */
  readonly records: readonly string[]
  readonly world: BoxWorld
  /** How many submodules have no checkout. */
  readonly emptyModules: number
  /** The top of the project, and its protected places. */
  readonly workspace: string
  readonly protectedPaths: readonly string[]
}

export class OwnRepository {
  /** The directory to mount. */
  readonly dir: HostPath
  readonly #options: OwnOptions
  readonly #entry: string
  readonly #lock: Lock
  readonly #places: readonly string[]
  #seen = ''
  #timer: ReturnType<typeof setInterval> | undefined
  #working: Promise<void> = Promise.resolve()
  #isBusy = false
  #isOpen = true
  #reports = new Map<string, SyncReport>()
  #failure: string | undefined

  /** Takes over what an earlier run left unfinished, or makes a new copy of the host's repository. */
  static async open(options: OwnOptions, name: string): Promise<OwnRepository> {
    const top = `${options.world.sandbox.stateDir}/git`
    mkdirSync(top, { recursive: true, mode: 0o700 })
    for (const left of unfinished(top)) {
      const lock = tryLock(`${top}/${left}.lock`)
      if (lock === undefined) continue
      const own = new OwnRepository(options, `${top}/${left}`, lock)
      await own.#sync()
      return own
    }
    const lock = tryLock(`${top}/${name}.lock`)
    if (lock === undefined) throw new Error(`${name} is in use`)
    const own = new OwnRepository(options, `${top}/${name}`, lock)
    removeTree(`${top}/${name}`)
    for (let i = 0; i < options.emptyModules; i++)
      mkdirSync(emptyModule(own.dir, i), { recursive: true, mode: 0o700 })
    makeOwnDirectory(options.git, own.dir, `${own.#entry}/synced`)
    own.#seen = own.#look()
    return own
  }

  private constructor(options: OwnOptions, entry: string, lock: Lock) {
    this.#options = options
    this.#entry = entry
    this.#lock = lock
    this.dir = `${entry}/dir` as HostPath
    this.#places = [
      ...options.records,
      ...options.git.submodules.map(({ path }) => path.slice(options.git.path.length + 1)),
    ]
  }

  /** Syncs whenever a ref, HEAD or an unfinished operation changed on either side. */
  watch(): void {
    this.#timer = setInterval(() => {
      if (this.#isBusy || this.#look() === this.#seen) return
      this.#isBusy = true
      this.#working = this.#sync().finally(() => {
        this.#isBusy = false
      })
    }, LOOK_MS)
    this.#timer.unref()
  }

  /** After the last process of the sandbox. Returns lines for the user. */
  async finish(): Promise<readonly string[]> {
    clearInterval(this.#timer)
    await this.#working
    if (this.#look() !== this.#seen) await this.#sync()
    const reports = [...this.#reports]
    const isDone = this.#failure === undefined && reports.every(([, report]) => report.isComplete)
    if (isDone) removeTree(this.#entry)
    this.close()
    const lines = reports.flatMap(([place, report]) =>
      describeReport(place, report, this.#options.world.sandbox.id),
    )
    return this.#failure === undefined ? lines : [...lines, this.#failure]
  }

  /** Stops watching. What is in the directory stays for the next run, unless `finish` removed it. */
  close(): void {
    clearInterval(this.#timer)
    if (this.#isOpen) this.#lock.release()
    this.#isOpen = false
  }

  #look(): string {
    return `${fingerprint(this.dir, this.#places)}\n${fingerprint(this.#options.git.path, this.#places)}`
  }

  /** A failed sync changes nothing and is tried again with the next change. */
  async #sync(): Promise<void> {
    try {
      const { git, world, records, workspace, protectedPaths } = this.#options
      const host = new HostGit(git.path, `${this.#entry}/empty`)
      const box = new GitBox(world, git, this.dir)
      for (const { path, alternates } of [git, ...git.submodules]) {
        const below = path.slice(git.path.length)
        const file = syncedFile(`${this.#entry}/synced`, below)
        const sync = new RepositorySync(
          {
            world,
            box,
            host,
            gitDir: below === '' ? undefined : below.slice(1),
            objects: `${path}/objects`,
            alternates: alternates.map(({ from }) => from),
            isPartial: isPartial(path),
            scratch: `${this.#entry}/incoming`,
            records: below === '' ? records : ['.'],
            sandbox: world.sandbox.id,
            isGuarded:
              below === '' ? guardedPaths(workspace, protectedPaths) : path => path === '.gitmodules',
            hasConsent: false,
          },
          readSynced(file),
        )
        this.#reports.set(below, await sync.run())
        writeSynced(file, sync.synced)
      }
      this.#failure = undefined
      this.#seen = this.#look()
    } catch (error) {
      this.#failure = `git: ${printable(error instanceof Error ? error.message : String(error), 600)}`
      this.#seen = this.#look()
    }
  }
}

const isPartial = (gitDir: string): boolean =>
  readGitConfig(`${gitDir}/config`)?.some(
    ({ key }) => key === 'extensions.partialclone' || key === 'remote.promisor',
  ) === true

/** Entries with a record: a run that ended with something left to do, or was killed. */
const unfinished = (top: string): readonly string[] =>
  readdirSync(top).filter(name => !name.endsWith('.lock') && existsSync(`${top}/${name}/synced`))

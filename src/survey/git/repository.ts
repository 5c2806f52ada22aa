/**
 * What a backend must know about the git repository of a workspace. Found with a few lstat calls and never by running git,
 * which would obey the files that are being checked.
 */
import { basename } from '../../base/posix-path.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { PlacesFound } from '../places.ts'
import { watchedByRuns } from '../run-records.ts'
import { looksLikeGitDir, readGitFile, readUserConfig, resolveGitFile } from './directory.ts'
import { type Enclosing, enclosingRepositories } from './enclosing.ts'
import { GitSurvey } from './inside-git-dir.ts'

type RepositoryKind = 'none' | 'ancestor' | 'directory' | 'worktree' | 'submodule' | 'bare' | 'refused'

/** To be mounted: `pins` read-write on themselves, `protect` read-only on themselves. No path is in two of them. */
export interface RepositoryFacts extends PlacesFound {
  readonly kind: RepositoryKind
  /** The repository of which the sandbox gets its own copy. */
  readonly git: GitDirectory | undefined
  /** Repositories of the host that the project is a part of. */
  readonly enclosing: readonly Enclosing[]
  /** The worktrees that belong to the sandbox: `.` is the main one. */
  readonly records: readonly string[]
  /** Submodules without a checkout: the sandbox sees an empty directory of its own. */
  readonly emptyModules: readonly string[]
  readonly warnings: readonly string[]
}

export interface SurveyOptions {
  /** No git directory at or above it is ever mounted. */
  readonly home: string
  /** pen's state for this project. */
  readonly stateDir: string
  /** False for a sandbox without mounts: it shares the host's repository. */
  readonly ownRepository: boolean
  /** The user's own git configuration files: a `core.hooksPath` there may point into every project. Trusted. */
  readonly userConfigs?: readonly string[]
  /** Other protected places, absolute, in the workspace or in one of `roots`. */
  readonly protect?: readonly string[]
  /** Other directories that the sandbox may write. */
  readonly roots?: readonly string[]
}

/** `workspace` is canonical: absolute, no link in it. */
export function surveyRepository(workspace: string, options: SurveyOptions): RepositoryFacts {
  return new Survey(workspace, options).run(options)
}

class Survey {
  readonly workspace: string
  readonly #git: GitSurvey
  readonly #ownRepository: boolean
  readonly #stateDir: string
  #directory: GitDirectory | undefined

  constructor(workspace: string, { home, ownRepository, stateDir, roots = [] }: SurveyOptions) {
    this.workspace = workspace
    this.#ownRepository = ownRepository
    this.#stateDir = stateDir
    this.#git = new GitSurvey(workspace, { home, stateDir, roots })
  }

  run({ home, userConfigs = [], protect = [], roots = [] }: SurveyOptions): RepositoryFacts {
    this.#git.places.list(this.workspace)
    const enclosing = enclosingRepositories(this.workspace)
    const kind = this.#repository(home, enclosing)
    if (kind === 'none' || kind === 'ancestor' || kind === 'refused') this.#noBareRepository()
    for (const one of enclosing) this.#git.enclosing(one, this.#ownRepository)
    for (const file of userConfigs) this.#userConfig(file)
    for (const path of protect) {
      const root = [this.workspace, ...roots].find(one => path.startsWith(`${one}/`))
      // In its own git directory the sandbox may write what it likes.
      const isOwn = this.#directory !== undefined && isWithin(path, this.#directory.path)
      if (root !== undefined && !isOwn) this.#git.places.add(path, root)
    }
    const { warnings, records, emptyModules, places } = this.#git
    return { kind, git: this.#directory, enclosing, records, emptyModules, ...places.found(), warnings }
  }

  /** The user's own file, so links are followed: some people keep it in a project, which may be this one. */
  #userConfig(file: string): void {
    const { path, settings } = readUserConfig(file)
    this.#git.protectInside(path, this.workspace)
    this.#git.leadsOfUser(settings, file)
  }

  #repository(home: string, enclosing: readonly Enclosing[]): RepositoryKind {
    const dotGit = `${this.workspace}/.git`
    const stats = this.#git.places.look(dotGit)
    if (stats?.isDirectory() && this.#ownRepository && !looksLikeGitDir(dotGit)) {
      this.#git.places.add(dotGit, this.workspace)
      this.#git.warn(`${dotGit} is not a repository: it is read-only inside`, 'remove it, or run git init')
      return 'refused'
    }
    if (stats?.isDirectory() && this.#ownRepository && isBeingMade(dotGit, this.#stateDir)) {
      this.#git.places.add(dotGit, this.workspace)
      this.#git.warn(
        `another sandbox is making ${dotGit}: it is read-only inside`,
        'wait for the other sandbox',
      )
      return 'refused'
    }
    if (stats?.isDirectory()) {
      this.#use(dotGit, '.')
      return 'directory'
    }
    if (stats?.isFile()) return this.#pointer(dotGit, home)
    if (stats !== undefined) {
      this.#git.places.add(dotGit, this.workspace)
      this.#git.warn(
        `${dotGit} is a link or a special file: pen does not follow it, so git does not work inside`,
        'replace it by the directory itself, or by a "gitdir:" file',
      )
      return 'refused'
    }
    if (looksLikeGitDir(this.workspace)) {
      this.#git.shared(this.workspace, this.workspace)
      return 'bare'
    }
    return this.#noRepository(dotGit, home, enclosing)
  }

  /** A repository may be made inside, by `git init`; hooks and settings that run programs may not. */
  #noRepository(dotGit: string, home: string, [nearest]: readonly Enclosing[]): RepositoryKind {
    this.#git.places.add(dotGit, this.workspace, { kind: 'git-dir' })
    this.#git.places.add(`${dotGit}/index`, this.workspace, { kind: 'git-index' })
    this.#git.shared(dotGit, this.workspace)
    if (nearest === undefined) return 'none'
    // A home directory that is a repository holds dotfiles and is never a project.
    if (!isWithin(home, nearest.top))
      this.#git.warn(
        `this directory is a part of the repository ${nearest.top}, which the sandbox does not see: git does not work inside`,
        'run pen there, if git is needed',
      )
    return 'ancestor'
  }

  /**
   * Without a `.git`, git takes the directory itself for a repository when it has a `HEAD`. The rest may be elsewhere, as
   * `commondir` says. A `HEAD` of the user's may stay, so the other files are watched.
   */
  #noBareRepository(): void {
    const head = `${this.workspace}/HEAD`
    if (this.#git.places.look(head) === undefined) this.#git.places.add(head, this.workspace)
    else this.#git.shared(this.workspace, this.workspace)
  }

  #pointer(dotGit: string, home: string): RepositoryKind {
    const found = resolveGitFile(this.workspace, home)
    this.#git.places.add(dotGit, this.workspace)
    switch (found.kind) {
      case 'inside':
        this.#git.pinAbove(found.gitDir)
        this.#use(found.gitDir, '.')
        return 'directory'
      case 'submodule':
        this.#use(found.gitDir, '.')
        return 'submodule'
      case 'worktree':
        this.#use(found.commonDir, `worktrees/${basename(found.gitDir)}`)
        return 'worktree'
      case 'refused':
        // The host's git obeys the file: a repository must not appear where it leads.
        this.#git.protectInside(readGitFile(dotGit) ?? dotGit, this.workspace)
        this.#git.warn(
          `${dotGit} is not obeyed, because ${found.why}: git does not work inside`,
          'run "git worktree repair" in the main checkout, or "git submodule update" in the superproject, if you trust the file',
        )
        return 'refused'
    }
  }

  /** `record` is the worktree that the project is. */
  #use(commonDir: string, record: string): void {
    if (!this.#ownRepository) {
      this.#git.shared(commonDir, this.workspace)
      return
    }
    if (this.#git.places.look(`${commonDir}/reftable`) !== undefined) {
      this.#git.warn(
        `${commonDir} keeps its refs in reftable, which pen does not support: git does not work inside`,
        'git refs migrate --ref-format=files',
      )
      this.#git.places.add(commonDir, this.workspace)
      return
    }
    const odd = this.#git.oddPart(commonDir)
    if (odd !== undefined) {
      this.#git.warn(
        `${odd} is a link or a special file: pen does not follow it, so git does not work inside`,
        'replace it by what it names',
      )
      this.#git.leads(commonDir, [this.workspace])
      this.#git.places.add(commonDir, this.workspace)
      return
    }
    this.#git.records.push(record)
    this.#directory = this.#git.own(commonDir)
    this.#git.gitlinks(`${commonDir}/${record}`, this.workspace)
  }
}

/** A sandbox that runs now, in this project without a repository, may swap every file of it. */
const isBeingMade = (dotGit: string, stateDir: string): boolean =>
  watchedByRuns(stateDir, 'all').some(({ path, rule }) => path === dotGit && rule.kind === 'git-dir')

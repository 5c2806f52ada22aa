/**
 * What a backend must know about the git repository of a workspace. Found with a few lstat calls and never by running git,
 * which would obey the files that are being checked.
 */
import { dirname } from '../../base/posix-path.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { PlacesFound } from '../places.ts'
import { looksLikeGitDir, readUserConfig, resolveGitFile } from './directory.ts'
import { GitSurvey } from './inside-git-dir.ts'
import type { GitTree } from './links.ts'

export type RepositoryKind = 'none' | 'ancestor' | 'directory' | 'worktree' | 'submodule' | 'bare' | 'refused'

/**
 * To be mounted in the order of path depth, the deeper over the shallower: `mounts` read-write, `pins` read-write on
 * themselves, `protect` read-only on themselves. No path is in two of them.
 */
export interface RepositoryFacts extends PlacesFound {
  readonly kind: RepositoryKind
  readonly mounts: readonly { readonly path: string; readonly mode: 'rw' }[]
  readonly warnings: readonly string[]
  /** Git directories that the sandbox can write. */
  readonly trees: readonly GitTree[]
}

export interface SurveyOptions {
  /** No git directory at or above it is ever mounted. */
  readonly home: string
  /** The user's own git configuration files: a `core.hooksPath` there may point into every project. Trusted. */
  readonly userConfigs?: readonly string[]
  /** Other protected places, absolute, in the workspace or in one of `roots`. */
  readonly protect?: readonly string[]
  /** Other directories that the sandbox may write. */
  readonly roots?: readonly string[]
}

/** `workspace` is canonical: absolute, no link in it. */
export function surveyRepository(workspace: string, options: SurveyOptions): RepositoryFacts {
  return new Survey(workspace, options.home).run(options)
}

class Survey {
  readonly workspace: string
  readonly #git: GitSurvey
  readonly #mounts: string[] = []

  constructor(workspace: string, home: string) {
    this.workspace = workspace
    this.#git = new GitSurvey(workspace, home)
  }

  run({ home, userConfigs = [], protect = [], roots = [] }: SurveyOptions): RepositoryFacts {
    this.#git.places.list(this.workspace)
    const kind = this.#repository(home)
    for (const file of userConfigs) this.#userConfig(file)
    for (const path of protect) {
      const root = [this.workspace, ...roots].find(one => path.startsWith(`${one}/`))
      if (root !== undefined) this.#git.places.add(path, root)
    }
    const mounts = this.#mounts.map(path => ({ path, mode: 'rw' as const }))
    const { warnings, trees, places } = this.#git
    return { kind, mounts, ...places.found(), warnings, trees }
  }

  /** The user's own file, so links are followed: some people keep it in a project, which may be this one. */
  #userConfig(file: string): void {
    const { path, settings } = readUserConfig(file)
    this.#git.protectInside(path, this.workspace)
    this.#git.obeyed(settings, file, this.workspace)
  }

  #repository(home: string): RepositoryKind {
    const dotGit = `${this.workspace}/.git`
    const stats = this.#git.places.look(dotGit)
    if (stats?.isDirectory()) {
      this.#git.gitDir(dotGit, this.workspace)
      this.#git.places.pin(dotGit, this.workspace)
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
      this.#git.gitDir(this.workspace, this.workspace)
      return 'bare'
    }
    return this.#noRepository(dotGit, home)
  }

  /** A repository may be made inside, by `git init`; hooks and settings that run programs may not. */
  #noRepository(dotGit: string, home: string): RepositoryKind {
    this.#git.places.add(dotGit, this.workspace, { kind: 'git-dir' })
    this.#git.gitDir(dotGit, this.workspace)
    for (let up = dirname(this.workspace); ; up = dirname(up)) {
      if (this.#git.places.look(up === '/' ? '/.git' : `${up}/.git`) !== undefined) {
        // A home directory that is a repository holds dotfiles and is never a project.
        if (!isWithin(home, up))
          this.#git.warn(
            `this directory is a part of the repository ${up}, which the sandbox does not see: git does not work inside`,
            'run pen there, if git is needed',
          )
        return 'ancestor'
      }
      if (up === '/') return 'none'
    }
  }

  #pointer(dotGit: string, home: string): RepositoryKind {
    const found = resolveGitFile(this.workspace, home)
    this.#git.places.add(dotGit, this.workspace)
    switch (found.kind) {
      case 'inside':
        this.#git.gitDir(found.gitDir, this.workspace)
        return 'directory'
      case 'submodule':
        this.#mounts.push(found.gitDir)
        this.#git.gitDir(found.gitDir, found.gitDir)
        return 'submodule'
      case 'worktree':
        this.#linkedWorktree(found.gitDir, found.commonDir)
        return 'worktree'
      case 'refused':
        this.#git.warn(
          `${dotGit} is not obeyed, because ${found.why}: git does not work inside`,
          'run "git worktree repair" in the main checkout, or "git submodule update" in the superproject, if you trust the file',
        )
        return 'refused'
    }
  }

  /** The shared repository is writable for commits; other worktrees and the main one's submodules are not. */
  #linkedWorktree(gitDir: string, commonDir: string): void {
    this.#mounts.push(commonDir, gitDir)
    this.#git.gitDir(commonDir, commonDir, 'common')
    this.#git.places.add(`${commonDir}/worktrees`, commonDir)
    this.#git.places.add(`${commonDir}/modules`, commonDir)
    this.#git.places.reopen(gitDir)
    this.#git.trees.push({ path: gitDir, root: gitDir, links: [] })
    for (const name of ['gitdir', 'commondir']) this.#git.places.add(`${gitDir}/${name}`, gitDir)
    this.#git.config(`${gitDir}/config.worktree`, gitDir)
    this.#git.submodules(`${gitDir}/modules`, gitDir)
  }
}

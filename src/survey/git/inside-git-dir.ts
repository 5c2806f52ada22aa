/**
 * What a repository of the host leads to: files in the project that the host's git runs or obeys, submodules, and worktrees.
 * The sandbox has a git directory of its own, so nothing in the host's one can be written from inside.
 */
import { PenError } from '../../base/error.ts'
import { dirname, resolve } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { sha256 } from '../../base/sha256.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import { isWithin } from '../../policy/files/path.ts'
import { Places, refuseHardLink } from '../places.ts'
import { watchedByRuns } from '../run-records.ts'
import { alternates } from './alternates.ts'
import { type GitSetting, riskySettings } from './config.ts'
import { gitDirAt, readPointer, realPath, requireGitConfig } from './directory.ts'
import type { Enclosing } from './enclosing.ts'
import { gitlinks } from './gitlinks.ts'
import { wordsRunByGit } from './programs.ts'
import { findSubmodules, listDirectory } from './submodules.ts'

/** Where the sandbox has the host's objects: a directory per repository. */
const GIT_LENT = '/run/pen-git'
/** Parts that are files. The others are directories. */
const ODD_FILES = ['packed-refs', 'config', 'config.worktree']

/** Each is a mount or two, and a mount costs 0.2 ms. */
const MAX_GITLINKS = 500

/** git's own limit on nested includes. */
const MAX_INCLUDE_DEPTH = 10
const MAX_INCLUDED = 100

/** A file of settings, the directory that the sandbox may write, and the top of the working tree that they are for. */
interface Obeyed {
  readonly file: string
  readonly root: string
  readonly top?: string
}

interface GitSurveyOptions {
  readonly home: string
  readonly stateDir: string
  /** Other directories that the sandbox may write. */
  readonly roots?: readonly string[]
}

export class GitSurvey {
  readonly workspace: string
  readonly places: Places
  readonly warnings: string[] = []
  /** Worktrees of the repository that lie in the project. */
  readonly records: string[] = []
  /** Submodules without a checkout. */
  readonly emptyModules: string[] = []
  readonly #home: string
  readonly #stateDir: string
  /** Git directories whose indexes were read for gitlinks. */
  readonly #entered = new Set<string>()
  /** Tops of working trees: git runs what its settings name from there. */
  readonly #tops: Set<string>
  #hasOwn: boolean = false

  constructor(workspace: string, { home, stateDir, roots = [] }: GitSurveyOptions) {
    this.workspace = workspace
    this.#tops = new Set([workspace])
    this.#home = home
    this.#stateDir = stateDir
    this.places = new Places([workspace, ...roots], () => {
      const absent = watchedByRuns(stateDir, 'running').filter(({ rule }) => rule.kind !== 'link')
      return new Set(absent.map(({ path }) => path))
    })
  }

  /** A sandbox may have made the repository: a link would bring files from elsewhere into the copy. */
  oddPart(dir: string): string | undefined {
    const isOdd = (name: string): boolean => {
      const stats = this.places.look(`${dir}/${name}`)
      return stats !== undefined && !(ODD_FILES.includes(name) ? stats.isFile() : stats.isDirectory())
    }
    const odd = [...ODD_FILES, 'objects', 'refs', 'logs', 'worktrees'].find(isOdd)
    return odd === undefined ? undefined : `${dir}/${odd}`
  }

  /** The repository of which the sandbox gets its own copy. */
  own(dir: string): GitDirectory {
    this.#hasOwn = true
    this.#refuseHardLinks(dir)
    this.records.push(...this.#worktrees(dir).filter(record => !this.records.includes(record)))
    this.leads(dir, [...this.#tops])
    // A linked worktree has submodules of its own.
    const modules = this.records.map(record => findSubmodules(`${dir}/${record}/modules`.replace('/./', '/')))
    const found = modules.flatMap(one => one.found)
    if (modules.some(({ complete }) => !complete))
      this.warn(
        `${dir}/modules holds links, or more than pen looks at: some submodules do not work inside`,
        'run pen in the submodule itself',
      )
    for (const { gitDir, pointer } of found) {
      this.#refuseHardLinks(gitDir)
      this.leads(gitDir, [pointer === undefined ? this.workspace : dirname(pointer)])
      if (!pointer?.startsWith(`${this.workspace}/`)) continue
      this.#tops.add(dirname(pointer))
      this.places.add(pointer, this.workspace, { kind: 'git-pointer', to: gitDir })
      this.gitlinks(gitDir, dirname(pointer))
    }
    // The same in each run: the sandbox's directory names it, and clones that were made inside do.
    const nameOf = (gitDir: string): string => sha256(gitDir.slice(dir.length)).slice(0, 16)
    const submodules = found.map(({ gitDir }) => ({
      ...this.#borrowed(gitDir, nameOf(gitDir)),
      submodules: [],
    }))
    return { ...this.#borrowed(dir, '0'), submodules }
  }

  /** What it leads to in the project. Its git directory is not in the sandbox. */
  enclosing({ commonDir, dir, top }: Enclosing, hasMounts: boolean): void {
    this.#tops.add(top)
    if (hasMounts) {
      this.#worktrees(commonDir)
      this.gitlinks(dir, top)
    }
    for (const one of new Set([commonDir, dir])) this.leads(one, [...this.#tops])
  }

  /** For a sandbox without mounts, and for a repository that is made during the run: its hooks and settings are watched. */
  shared(dir: string, root: string): void {
    this.places.add(`${dir}/hooks`, root, { kind: 'git-hooks' })
    this.places.add(`${dir}/commondir`, root)
    // The old directories for remotes: a push to a local remote runs its hooks. git creates `branches`, and leaves it empty.
    this.places.add(`${dir}/remotes`, root)
    const isUnused = listDirectory(`${dir}/branches`).length === 0
    if (isUnused) this.places.watch(`${dir}/branches`, root, { kind: 'git-hooks' })
    else this.places.add(`${dir}/branches`, root)
    // The next run mounts what it names, so that git inside can borrow from it.
    this.places.add(`${dir}/objects/info/alternates`, root)
    for (const name of ['config', 'config.worktree']) {
      const file = `${dir}/${name}`
      const settings = this.places.look(file)?.isFile() ? this.#read(file) : []
      this.places.add(file, root, { kind: 'git-config', known: riskySettings(settings) })
      this.obeyed(settings, { file, root })
    }
  }

  /** An earlier run may have made a hard link to a file of git's. Through it, the sandbox would write that file. */
  #refuseHardLinks(dir: string): void {
    for (const below of [dir, `${dir}/hooks`, `${dir}/info`])
      for (const name of listDirectory(below)) {
        const stats = this.places.look(`${below}/${name}`)
        if (stats?.isFile()) refuseHardLink(`${below}/${name}`, stats, 'protected')
      }
  }

  /** What the settings in a git directory, or in a worktree's record, name for the working trees at `tops`. */
  leads(dir: string, tops: readonly string[]): void {
    for (const name of ['config', 'config.worktree']) {
      const file = `${dir}/${name}`
      // The host's git follows links.
      const settings = this.#read(realPath(file) ?? file)
      for (const top of tops) this.obeyed(settings, { file, root: this.workspace, top })
    }
  }

  /** Settings of the user's own. Call it when the working trees are known. */
  leadsOfUser(settings: readonly GitSetting[], file: string): void {
    for (const top of this.#tops) this.obeyed(settings, { file, root: this.workspace, top })
  }

  /** What a config names: a hooks directory, programs, and other config files, which name more. */
  obeyed(settings: readonly GitSetting[], from: Obeyed, included = new Set<string>(), depth = 0): void {
    const { file, root, top = this.workspace } = from
    if (settings.length === 0) return
    const hooks = settings.findLast(s => s.key === 'core.hookspath')?.value
    if (hooks !== undefined) this.#hooksPath(hooks, top)
    const template = settings.findLast(s => s.key === 'init.templatedir')?.value
    if (template !== undefined) this.#template(template, root)
    for (const word of wordsRunByGit(settings)) this.#program(word, root, top)
    for (const { key, value } of settings) {
      if (key !== 'include.path' && key !== 'includeif.path') continue
      const path = this.#resolve(dirname(file), value)
      if (path === undefined || included.has(path)) continue
      if (included.size >= MAX_INCLUDED)
        throw new PenError('CONFIG_FILE', {
          what: `git's settings include more than ${MAX_INCLUDED} files, and pen would have to protect each`,
          at: file,
          hint: 'let them include fewer',
        })
      included.add(path)
      this.protectInside(path, root)
      if (depth < MAX_INCLUDE_DEPTH)
        this.obeyed(this.#read(realPath(path) ?? path), { file: path, root, top }, included, depth + 1)
    }
  }

  #read(file: string): readonly GitSetting[] {
    const settings = requireGitConfig(file)
    if (settings === undefined)
      this.warn(
        `${file} is not in the form of git's settings: what it leads to is not protected`,
        'repair it: git config --file FILE --list says where',
      )
    return settings ?? []
  }

  #hooksPath(value: string, top: string): void {
    const dir = this.#resolve(top, value)
    if (dir === undefined) return
    // Above the workspace it is out of the sandbox's reach.
    if (isWithin(dir, this.workspace) && (isWithin(top, dir) || dir === this.workspace))
      this.warn(
        `core.hooksPath is ${value}: git runs hooks from ${dir}, the top of a working tree, which stays writable`,
        'move the hooks into a directory of their own',
      )
    else this.protectInside(dir, this.workspace)
  }

  /** Every new repository of the user copies the hooks and the settings in this directory. */
  #template(value: string, root: string): void {
    const dir = this.#resolve(this.workspace, value)
    if (dir === undefined) return
    for (const name of ['hooks', 'config']) this.protectInside(`${dir}/${name}`, root)
  }

  /** git runs it at the top of the working tree. A word that is not an existing file is an ordinary argument. */
  #program(word: string, root: string, top: string): void {
    const path = this.#resolve(top, word)
    const real = path === undefined ? undefined : realPath(path)
    const stats = real === undefined ? undefined : this.places.look(real)
    if (path === undefined || real === undefined || !stats?.isFile()) return
    if (stats.nlink === 1n) this.protectInside(path, root)
    else if (real.startsWith(`${this.workspace}/`))
      this.warn(
        `git runs ${real}, as your settings say, and it stays writable because it has a second name (a hard link)`,
        'make it a file of its own: cp -p FILE FILE.new && mv FILE.new FILE',
      )
  }

  /** As git reads a path in its configuration. Homes of other users are not in any workspace. */
  #resolve(base: string, value: string): string | undefined {
    if (value.startsWith('~/')) return resolve(this.#home, value.slice(2))
    return value === '' || value.startsWith('~') ? undefined : resolve(base, value)
  }

  /** Protects the path itself and, when links lead from outside into the workspace, the resolved path too. */
  protectInside(path: string, root: string): void {
    for (const place of new Set([path, realPath(path) ?? path])) {
      const home = place.startsWith(`${this.workspace}/`) ? this.workspace : root
      this.places.add(place, home)
    }
  }

  /** A worktree in the project is the sandbox's too. Its `.git` file may name only its own record. */
  #worktrees(dir: string): readonly string[] {
    return listDirectory(`${dir}/worktrees`).flatMap(name => {
      const record = `${dir}/worktrees/${name}`
      const pointer = readPointer(`${record}/gitdir`)
      if (!pointer?.startsWith(`${this.workspace}/`)) return []
      this.places.add(pointer, this.workspace, { kind: 'git-pointer', to: record })
      this.#refuseHardLinks(record)
      this.#tops.add(dirname(pointer))
      this.leads(record, [dirname(pointer)])
      this.gitlinks(record, dirname(pointer))
      return [`worktrees/${name}`]
    })
  }

  #borrowed(path: string, name: string): Omit<GitDirectory, 'submodules'> {
    const lentAt = `${GIT_LENT}/${name}`
    const hasLfs = this.places.look(`${path}/lfs`)?.isDirectory() === true
    return { path, lentAt, alternates: alternates(path, `${lentAt}/objects`), hasLfs }
  }

  /**
   * A repository at a gitlink is the one door that remains: `git status` on the host enters it. The `.git` of a submodule is
   * held, and an uninitialised one becomes an empty directory of the sandbox's own. `top` is the working tree of this index.
   */
  gitlinks(gitDir: string, top: string): void {
    if (this.#entered.has(gitDir)) return
    this.#entered.add(gitDir)
    const { paths, complete } = gitlinks(gitDir, `${this.#stateDir}/gitlinks.json`)
    const inside = paths.map(path => `${top}/${path}`).filter(place => place.startsWith(`${this.workspace}/`))
    if (!complete || inside.length > MAX_GITLINKS || this.#entered.size > MAX_GITLINKS)
      throw new PenError('CONFIG_FILE', {
        what: `the index lists more than ${MAX_GITLINKS} submodules, with those in them, or pen cannot read it: the sandbox could plant repositories there`,
        at: `${gitDir}/index`,
        hint: 'check the index with "git ls-files --stage" (git status would enter them), or run pen in one of the submodules',
      })
    for (const place of inside) {
      if (this.emptyModules.includes(place)) continue
      const isEmpty = this.places.look(place)?.isDirectory() === true && listDirectory(place).length === 0
      if (isEmpty) {
        this.#empty(place)
        continue
      }
      this.places.add(`${place}/.git`, this.workspace)
      // It may lie elsewhere than in `.git/modules`, or too deep there.
      const nested = gitDirAt(place)
      if (nested === undefined || this.#entered.has(nested)) continue
      this.#tops.add(place)
      this.leads(nested, [place])
      this.gitlinks(nested, place)
    }
  }

  /** Without a repository of its own, the sandbox has no use for the directory. */
  #empty(place: string): void {
    if (!this.#hasOwn) {
      this.places.add(place, this.workspace)
      return
    }
    this.emptyModules.push(place)
    this.pinAbove(place)
  }

  /** For a mount in the project: an ancestor could be renamed and replaced, and the mount would go with the old one. */
  pinAbove(place: string): void {
    for (let up = dirname(place); up.length > this.workspace.length; up = dirname(up))
      this.places.pin(up, this.workspace)
  }

  warn(what: string, fix: string): void {
    this.warnings.push(`${printable(what)}; ${fix}`)
  }
}

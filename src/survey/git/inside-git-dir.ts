/**
 * The places inside one git directory that the host's git would obey, and what they lead to: hooks, settings, included
 * files, submodules and other worktrees.
 */
import { PenError } from '../../base/error.ts'
import { dirname, resolve } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { type PlaceRule, Places } from '../places.ts'
import { type GitSetting, riskySettings } from './config.ts'
import { readPointer, realPath, requireGitConfig } from './directory.ts'
import { type GitTree, linksAtTop } from './links.ts'
import { wordsRunByGit } from './programs.ts'
import { findSubmodules, listDirectory } from './submodules.ts'

/** Mounts cost 0.2 ms each and more as they add up: past this many, the parent directory is held as a whole. */
const MAX_HELD_APART = 16

/** git's own limit on nested includes. */
const MAX_INCLUDE_DEPTH = 10
const MAX_INCLUDED = 100

export class GitSurvey {
  readonly workspace: string
  readonly places = new Places()
  readonly warnings: string[] = []
  readonly trees: GitTree[] = []
  readonly #home: string
  readonly #included = new Set<string>()
  #moduleCount = 0

  constructor(workspace: string, home: string) {
    this.workspace = workspace
    this.#home = home
  }

  /** `root` is the mount that the directory lies in: nothing above it can be renamed from inside. */
  gitDir(dir: string, root: string, role: 'whole' | 'common' = 'whole'): void {
    this.trees.push({ path: dir, root, links: this.places.look(dir) === undefined ? [] : linksAtTop(dir) })
    this.#settings(dir, root)
    if (role === 'whole') {
      this.submodules(`${dir}/modules`, root)
      this.#sharedDir(dir, root)
    }
    if (this.places.look(`${dir}/objects/info/alternates`)?.isFile())
      this.warn(
        `${dir}/objects/info/alternates borrows objects from another repository, which the sandbox does not see`,
        'grant that repository under files.read, or run "git repack -ad" and remove the file',
      )
  }

  #settings(dir: string, root: string, settings?: readonly GitSetting[]): void {
    this.places.add(`${dir}/hooks`, root, { kind: 'git-hooks' })
    this.places.add(`${dir}/commondir`, root)
    this.#oldRemotes(dir, root)
    this.config(`${dir}/config`, root, settings)
    this.config(`${dir}/config.worktree`, root)
  }

  /** The old directories for remotes, which git still reads: a push to a local remote runs its hooks. */
  #oldRemotes(dir: string, root: string): void {
    this.places.add(`${dir}/remotes`, root)
    // git creates this directory and leaves it empty.
    const branches = `${dir}/branches`
    const unused = this.places.look(branches) === undefined || listDirectory(branches).length === 0
    if (unused) this.places.watch(branches, root, { kind: 'git-hooks' })
    else this.places.add(branches, root)
  }

  config(file: string, root: string, known?: readonly GitSetting[]): void {
    const settings = known ?? (this.places.look(file)?.isFile() ? this.#read(file) : [])
    this.places.add(file, root, { kind: 'git-config', known: riskySettings(settings) })
    this.obeyed(settings, file, root)
  }

  /** What a config names: a hooks directory, programs, and other config files, which name more. */
  obeyed(settings: readonly GitSetting[], file: string, root: string, depth = 0): void {
    if (settings.length === 0) return
    const hooks = settings.findLast(s => s.key === 'core.hookspath')?.value
    if (hooks !== undefined) this.#hooksPath(hooks)
    const template = settings.findLast(s => s.key === 'init.templatedir')?.value
    if (template !== undefined) this.#template(template, root)
    for (const word of wordsRunByGit(settings)) this.#program(word, root)
    for (const { key, value } of settings) {
      if (key !== 'include.path' && key !== 'includeif.path') continue
      const path = this.#resolve(dirname(file), value)
      if (path === undefined || this.#included.has(path)) continue
      if (this.#included.size >= MAX_INCLUDED)
        throw new PenError('CONFIG_FILE', {
          what: `git's settings include more than ${MAX_INCLUDED} files, and pen would have to protect each`,
          at: file,
          hint: 'let them include fewer',
        })
      this.#included.add(path)
      this.protectInside(path, root)
      if (depth < MAX_INCLUDE_DEPTH) this.obeyed(this.#read(realPath(path) ?? path), path, root, depth + 1)
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

  #hooksPath(value: string): void {
    const dir = this.#resolve(this.workspace, value)
    if (dir === undefined) return
    if (dir === this.workspace || this.workspace.startsWith(`${dir}/`))
      this.warn(
        `core.hooksPath is ${value}: git runs hooks from the top of the workspace, which stays writable`,
        'move the hooks into a directory of their own',
      )
    else this.protectInside(dir, this.workspace)
  }

  /** Every new repository of the user copies the hooks in this directory. */
  #template(value: string, root: string): void {
    const dir = this.#resolve(this.workspace, value)
    if (dir !== undefined) this.protectInside(`${dir}/hooks`, root)
  }

  /** git runs it at the top of the workspace. A word that is not an existing file is an ordinary argument. */
  #program(word: string, root: string): void {
    const path = this.#resolve(this.workspace, word)
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

  /** Where `commondir` says so, git takes hooks and settings from another directory, and worktrees are recorded there. */
  #sharedDir(dir: string, root: string): void {
    const named = this.places.look(`${dir}/commondir`)?.isFile() === true
    const shared = named ? readPointer(`${dir}/commondir`) : undefined
    if (shared === undefined || shared === dir) {
      this.worktrees(dir, root)
      return
    }
    const home = shared.startsWith(`${this.workspace}/`) ? this.workspace : root
    this.#settings(shared, home)
    this.worktrees(shared, home)
  }

  /** Other worktrees' records are kept whole, or `git worktree prune` inside would delete what it cannot see. */
  worktrees(gitDir: string, root: string): void {
    const dir = `${gitDir}/worktrees`
    const stats = this.places.look(dir)
    if (stats?.isSymbolicLink()) this.places.add(dir, root)
    const names = stats === undefined ? [] : listDirectory(dir)
    if (names.length > MAX_HELD_APART) {
      this.places.add(dir, root)
      this.warn(
        `${dir} has ${names.length} entries and is read-only inside: commits in nested worktrees do not work`,
        'run "git worktree prune" on the host',
      )
      return
    }
    for (const name of names) {
      const record = `${dir}/${name}`
      const pointer = readPointer(`${record}/gitdir`)
      if (pointer === undefined || !pointer.startsWith(`${this.workspace}/`)) {
        this.places.add(record, root)
        continue
      }
      for (const file of ['gitdir', 'commondir']) this.places.add(`${record}/${file}`, root)
      this.config(`${record}/config.worktree`, root)
      this.submodules(`${record}/modules`, root)
      this.places.add(pointer, this.workspace, { kind: 'git-pointer', to: record })
    }
  }

  submodules(dir: string, root: string): void {
    if (this.places.look(dir) === undefined) return
    const { found, links, complete } = findSubmodules(dir)
    for (const link of links) this.places.add(link, root)
    this.#moduleCount += found.length
    const apart = complete && this.#moduleCount <= MAX_HELD_APART
    if (!apart) {
      this.places.add(dir, root)
      this.warn(
        `${dir} holds ${found.length} or more submodules or other directories and is read-only inside: commits in submodules do not work`,
        'run pen in the submodule itself',
      )
    }
    for (const { gitDir, settings, pointer } of found) {
      const rule: PlaceRule = { kind: 'git-pointer', to: gitDir }
      if (apart) this.#settings(gitDir, root, settings)
      // Other checkouts of a submodule: their records say where its settings are, too.
      if (apart && this.places.look(`${gitDir}/worktrees`)?.isDirectory())
        this.places.add(`${gitDir}/worktrees`, root)
      if (pointer === undefined || !pointer.startsWith(`${this.workspace}/`)) continue
      if (apart) this.places.add(pointer, this.workspace, rule)
      else this.places.watch(pointer, this.workspace, rule)
    }
  }

  warn(what: string, fix: string): void {
    this.warnings.push(`${printable(what)}; ${fix}`)
  }
}

/**
 * The places inside one git directory that the host's git would obey, and what they lead to: hooks, settings, included
 * files, submodules and other worktrees.
 */
import { dirname, resolve } from 'node:path'
import { printable } from '../base/printable.ts'
import { type GitSetting, riskySettings } from './git-config.ts'
import { readGitConfig, readPointer } from './git-dir.ts'
import { type PlaceRule, Places } from './places.ts'
import { findSubmodules, listDirectory } from './submodules.ts'

/** Mounts cost 0.2 ms each and more as they add up: past this many, the parent directory is held as a whole. */
const MAX_HELD_APART = 16

export class GitSurvey {
  readonly workspace: string
  readonly places = new Places()
  readonly warnings: string[] = []
  #moduleCount = 0

  constructor(workspace: string) {
    this.workspace = workspace
  }

  /** `root` is the mount that the directory lies in: nothing above it can be renamed from inside. */
  gitDir(dir: string, root: string, role: 'whole' | 'common' = 'whole'): void {
    this.#settings(dir, root)
    if (role === 'whole') this.submodules(`${dir}/modules`, root)
    if (this.places.look(`${dir}/objects/info/alternates`)?.isFile())
      this.warn(
        `${dir}/objects/info/alternates borrows objects from another repository, which the sandbox does not see`,
        'grant that repository under files.read, or run "git repack -ad" and remove the file',
      )
  }

  #settings(dir: string, root: string, settings?: readonly GitSetting[]): void {
    this.places.add(`${dir}/hooks`, root, { kind: 'git-hooks' })
    this.places.add(`${dir}/commondir`, root)
    this.config(`${dir}/config`, root, settings)
    this.config(`${dir}/config.worktree`, root)
  }

  config(file: string, root: string, known?: readonly GitSetting[]): void {
    const settings = known ?? (this.places.look(file)?.isFile() ? (readGitConfig(file) ?? []) : [])
    this.places.add(file, root, { kind: 'git-config', known: riskySettings(settings) })
    this.hooksPath(settings)
    for (const { key, value } of settings.slice(0, 1000))
      if ((key === 'include.path' || key === 'includeif.path') && !value.startsWith('~'))
        this.#protectInside(resolve(dirname(file), value), root)
  }

  hooksPath(settings: readonly GitSetting[]): void {
    const value = settings.findLast(s => s.key === 'core.hookspath')?.value
    if (value === undefined || value === '' || value.startsWith('~')) return
    const dir = resolve(this.workspace, value)
    if (dir === this.workspace || this.workspace.startsWith(`${dir}/`))
      this.warn(
        `core.hooksPath is ${value}: git runs hooks from the top of the workspace, which stays writable`,
        'move the hooks into a directory of their own',
      )
    else this.#protectInside(dir, this.workspace)
  }

  #protectInside(path: string, root: string): void {
    const home = path.startsWith(`${this.workspace}/`) ? this.workspace : root
    this.places.add(path, home)
  }

  /** Other worktrees' records are kept whole, or `git worktree prune` inside would delete what it cannot see. */
  worktrees(dotGit: string): void {
    const dir = `${dotGit}/worktrees`
    const names = listDirectory(dir)
    if (names.length > MAX_HELD_APART) {
      this.places.add(dir, this.workspace)
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
        this.places.add(record, this.workspace)
        continue
      }
      for (const file of ['gitdir', 'commondir']) this.places.add(`${record}/${file}`, this.workspace)
      this.config(`${record}/config.worktree`, this.workspace)
      this.submodules(`${record}/modules`, this.workspace)
      this.places.add(pointer, this.workspace, { kind: 'git-pointer', to: record })
    }
  }

  submodules(dir: string, root: string): void {
    const found = findSubmodules(dir)
    this.#moduleCount += found.length
    const apart = this.#moduleCount <= MAX_HELD_APART
    if (!apart) {
      this.places.add(dir, root)
      this.warn(
        `${dir} holds ${found.length} or more submodules and is read-only inside: commits in submodules do not work`,
        'run pen in the submodule itself',
      )
    }
    for (const { gitDir, settings, pointer } of found) {
      const rule: PlaceRule = { kind: 'git-pointer', to: gitDir }
      if (apart) this.#settings(gitDir, root, settings)
      if (pointer === undefined || !pointer.startsWith(`${this.workspace}/`)) continue
      if (apart) this.places.add(pointer, this.workspace, rule)
      else this.places.watch(pointer, this.workspace, rule)
    }
  }

  warn(what: string, cure: string): void {
    this.warnings.push(`${printable(what)}; ${cure}`)
  }
}

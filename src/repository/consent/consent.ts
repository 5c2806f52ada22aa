/**
 * What needs the user's consent, because programs of the host would run or enter it. Each commit that the host does not have is
 * compared with each of its parents. The difference of two tips would hide what comes and goes between them, and a merge or
 * a rebase on the host writes that.
 */

import { type At, type GitRunner, runGit } from '../git/git-runner.ts'
import { ImportRefused } from '../import/import-objects.ts'
import { indexes } from '../submodules/gitlink-places.ts'
import { type Change, changedPaths, pathText } from '../sync/changed-paths.ts'
import type { SyncAllOptions } from '../sync-all.ts'
import { ALL, type Guard, guardedPaths } from './guarded-paths.ts'
import { hasCommit, newCommits, type Pair, type Peeled, peel, seeChanges, seeFiles } from './new-commits.ts'

const GITLINK = '160000'
/** A sandbox can make a few objects into millions of changes. */
const MAX_CHANGES = 200_000

/** The host's repository, or one of its submodules. */
export interface Guarded {
  readonly git: GitRunner
  readonly at: At
  readonly guard: Guard
  /** Whether the host's repository of the submodule at `path` has a commit. */
  readonly hasModule: (path: string, id: string) => Promise<boolean>
}

/** `dir` is a git directory of the host, and `git` runs there. */
export function guardedIn(
  options: Pick<
    SyncAllOptions,
    'git' | 'records' | 'workspace' | 'protectedPaths' | 'heldPaths' | 'mayWrite'
  >,
  dir: string,
  git: GitRunner,
): Guarded {
  const { workspace } = options
  const gitDir = (of: string): At =>
    of === options.git.path ? {} : { gitDir: of.slice(options.git.path.length + 1) }
  const tops = indexes(options)
  const top = dir === options.git.path ? workspace : tops.find(one => one.dir === dir)?.top
  const modules = new Map(tops.map(one => [one.top, one.dir]))
  return {
    git,
    at: gitDir(dir),
    guard: top === undefined ? ALL : guardedPaths(top, options),
    hasModule: async (path, id) => {
      const module = top === undefined ? undefined : modules.get(`${top}/${path}`)
      return module !== undefined && (await hasCommit(git, gitDir(module), id))
    },
  }
}

export interface Tips {
  /** Of branches, tags, notes and HEAD. */
  readonly refs: readonly string[]
  readonly stashes: readonly string[]
  /** What the host has checked out. */
  readonly current: string | undefined
  readonly until: number
}

export class Consent {
  readonly #in: Guarded
  readonly #tips: Tips
  readonly #verdicts = new Map<string, boolean>()
  #found: Promise<Found> | undefined
  #mine: Promise<ReadonlyMap<string, string>> | undefined

  /** The objects of the tips are on the host. */
  constructor(guarded: Guarded, tips: Tips) {
    this.#in = guarded
    this.#tips = tips
  }

  /** Changes in new commits that `tip` brings, by commit. `tip` is one of the tips. */
  async toNew(tip: string): Promise<ReadonlyMap<string, readonly Change[]>> {
    this.#found ??= this.#find()
    const { peeled, tainted, changes } = await this.#found
    const { type, id } = peeled.get(tip) ?? { type: 'unknown', id: tip }
    if (type === 'blob') return new Map()
    if (type === 'tree') return new Map([[id, await this.toStep(this.#tips.current, id)]])
    if (type !== 'commit') throw new ImportRefused(`${tip} is not on the host`)
    if (!tainted.has(id)) return new Map()
    this.#checkTime()
    const { git, at } = this.#in
    const own = await newCommits(git, at, [id])
    return new Map([...changes].filter(([commit]) => own.has(commit)))
  }

  /** The index follows from one commit to another, or `git stash pop` goes there. Undefined: from nothing. */
  async toStep(old: string | undefined, now: string): Promise<readonly Change[]> {
    this.#checkTime()
    const { git, at } = this.#in
    const out: Change[] = []
    const from = old === undefined ? 'nothing' : 'known'
    for (const change of await changedPaths(git, at, old, now))
      if (this.#isGuarded(change) && !(await this.#isFine(change, from))) out.push(change)
    return out
  }

  /** `git stash pop` writes the working tree, the index and often untracked files, each a commit. */
  async toStash(id: string): Promise<readonly Change[] | 'not a stash'> {
    const { git, at } = this.#in
    const args = [id]
    const listed = await runGit(git, { script: 'git rev-list --parents -n 1 "$1" --', args, ...at })
    const [, base, index, untracked, ...more] = listed.toString().trim().split(' ')
    if (base === undefined || index === undefined || more.length > 0) return 'not a stash'
    const { current } = this.#tips
    const steps = [[...(await this.toNew(id)).values()].flat()]
    // git follows renames between the commit below the stash and the user's. `git stash branch` writes that commit.
    for (const commit of [id, base, index]) steps.push([...(await this.toStep(current, commit))])
    if (untracked !== undefined) steps.push([...(await this.toStep(undefined, untracked))])
    return steps.flat()
  }

  async #find(): Promise<Found> {
    const { git, at } = this.#in
    const { refs, stashes } = this.#tips
    const peeled = await peel(git, at, [...new Set([...refs, ...stashes])])
    const commits = [...peeled.values()].flatMap(({ type, id }) => (type === 'commit' ? [id] : []))
    const parents = commits.length === 0 ? new Map<string, string[]>() : await newCommits(git, at, commits)
    const changes = await this.#changesIn(parents, this.#stashesAlone(parents, peeled))
    const tainted = new Set<string>()
    for (const [commit, above] of parents)
      if (changes.has(commit) || above.some(parent => tainted.has(parent))) tainted.add(commit)
    return { peeled, tainted, changes }
  }

  /** In the history of a branch, the commit of a stash is a merge like any other. */
  #stashesAlone(
    parents: ReadonlyMap<string, readonly string[]>,
    peeled: ReadonlyMap<string, Peeled>,
  ): ReadonlySet<string> {
    const { refs, stashes } = this.#tips
    const others = new Set([...refs.map(tip => peeled.get(tip)?.id), ...[...parents.values()].flat()])
    return new Set(stashes.filter(id => !others.has(id)))
  }

  async #changesIn(
    parents: ReadonlyMap<string, readonly string[]>,
    stashes: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, readonly Change[]>> {
    const { git, at } = this.#in
    const pairs = [...parents].flatMap(([commit, above]): Pair[] => {
      // The third parent of a stash has the untracked files alone. See `toStash`.
      const some = stashes.has(commit) ? above.slice(0, 2) : above
      return some.length === 0 ? [{ commit, parent: undefined }] : some.map(parent => ({ commit, parent }))
    })
    const seen: { readonly pair: Pair; readonly change: Change }[] = []
    if (pairs.length > 0)
      await seeChanges(git, at, pairs, (pair, change) => {
        this.#checkTime()
        if (!this.#isGuarded(change)) return
        if (seen.length === MAX_CHANGES) throw new ImportRefused('they change too many protected paths')
        seen.push({ pair, change })
      })
    const out = new Map<string, Change[]>()
    for (const { pair, change } of seen) {
      const from = pair.parent === undefined ? 'nothing' : parents.has(pair.parent) ? 'new' : 'known'
      if (await this.#isFine(change, from)) continue
      const list = out.get(pair.commit) ?? []
      list.push(change)
      out.set(pair.commit, list)
    }
    return out
  }

  #isGuarded({ path, before, after }: Change): boolean {
    const isGitlink = before.startsWith(GITLINK) || after.startsWith(GITLINK)
    return isGitlink || this.#in.guard.isPlace(pathText(path), before, after)
  }

  async #isFine(change: Change, from: From): Promise<boolean> {
    const { path, before, after } = change
    const key = [path, before, after, from].join('\0')
    const verdict = this.#verdicts.get(key) ?? (await this.#judge(change, from))
    this.#verdicts.set(key, verdict)
    return verdict
  }

  async #judge({ path, before, after }: Change, from: From): Promise<boolean> {
    this.#checkTime()
    if (after === '') return false
    const { guard, hasModule } = this.#in
    const name = pathText(path)
    this.#mine ??= this.#checkedOut()
    const mine = (await this.#mine).get(path) ?? ''
    // A merge with an older branch of the user's brings what the user has.
    if (from === 'known' && after === mine) return true
    // An addition to a history without the file is not fine: git could take another file for its old name.
    const isNext = from === 'nothing' || (before !== '' && before === mine)
    if (guard.isPlace(name, before, after)) return isNext && guard.isOwn(name, after)
    // The submodule is there, and goes to another commit of the host's.
    return before.startsWith(GITLINK) && after.startsWith(GITLINK) && (await hasModule(name, after.slice(7)))
  }

  /** The guarded entries of what the host has checked out. */
  async #checkedOut(): Promise<ReadonlyMap<string, string>> {
    const { git, at } = this.#in
    const out = new Map<string, string>()
    const { current } = this.#tips
    if (current !== undefined)
      await seeFiles(git, at, current, (path, entry) => {
        if (this.#isGuarded({ path, before: '', after: entry })) out.set(path, entry)
      })
    return out
  }

  /** A sandbox can make thousands of refs whose trees take a second each. */
  #checkTime(): void {
    if (Date.now() > this.#tips.until) throw new ImportRefused('it takes too long to look at each of them')
  }
}

/** What a commit is compared with: a parent that the host has, one that is new, or nothing, for a first commit. */
type From = 'known' | 'new' | 'nothing'

interface Found {
  readonly peeled: ReadonlyMap<string, Peeled>
  /** New commits that have one with changes in their history, or are one. */
  readonly tainted: ReadonlySet<string>
  readonly changes: ReadonlyMap<string, readonly Change[]>
}

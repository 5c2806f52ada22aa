/**
 * Merges commits of a sandbox that were put aside, because the branch moved on the host too. `git merge` would refuse: the
 * working tree is shared, so the files of the sandbox's commits are in it already. Here the branch and the index move, and
 * the working tree stays as it is.
 */
import { printable, shellWord } from '../../base/printable.ts'
import { parseGitConfig } from '../../survey/git/config.ts'
import { Consent, type Guarded, guardedIn } from '../consent/consent.ts'
import { fields, type GitRunner, runGit } from '../git/git-runner.ts'
import { HostGit } from '../git/host-git.ts'
import { MAX_SYNC_MS, type SyncAllOptions } from '../sync-all.ts'
import { applyRefs, applyWorktree } from './apply-sync.ts'
import { type Change, pathText } from './changed-paths.ts'
import type { RefMove } from './plan-sync.ts'
import { OLDER } from './set-aside.ts'
import { currentCommit, type RepositoryState, readHostState } from './state.ts'

const LIST = `git for-each-ref --format='%(objectname) %(refname)' "$1"`
/** Exit code 1: conflicts. Their paths follow the id of the tree, and end with an empty field. */
const MERGE = 'git merge-tree --write-tree -z --name-only --no-messages "$1" "$2"'
const COMMIT = `git -c user.useConfigOnly=true var GIT_AUTHOR_IDENT >/dev/null 2>&1 || {
    GIT_AUTHOR_NAME=$5 GIT_AUTHOR_EMAIL=$6; export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL; }
  git commit-tree -p "$1" -p "$2" -m "$3" "$4"`
const MESSAGE = 'pen: merged from the sandbox'
const MAX_PATHS = 5

export interface MergeOptions extends Omit<SyncAllOptions, 'entry' | 'dir'> {
  /** Settings of git with the user's name. */
  readonly identity: string | undefined
  readonly empty: string
}

/** Returns lines for the user. */
export async function mergeAside(options: MergeOptions): Promise<readonly string[]> {
  const { git, records, world } = options
  using host = new HostGit(git.path, options.empty)
  const top = `refs/pen/${world.sandbox.id}`
  const lines: string[] = []
  for (const { path } of [git, ...git.submodules]) {
    const below = path === git.path ? undefined : path.slice(git.path.length + 1)
    const run: GitRunner = call => host.run({ ...(below !== undefined && { gitDir: below }), ...call })
    const listed = (await runGit(run, { script: LIST, args: [top] })).toString().split('\n').slice(0, -1)
    for (const line of listed) {
      const [id = '', ref = ''] = line.split(' ')
      const name = ref.replace(OLDER, '/').slice(top.length + 1)
      if (!name.startsWith('heads/')) continue
      const guarded = guardedIn(options, path, host.run)
      const merging = new Merging(run, await readHostState(host.run, below), options, guarded)
      const aside = { ref, id, branch: `refs/${name}` }
      lines.push(`git: ${await merging.merge(aside, below === undefined ? records : ['.'])}`)
    }
  }
  return lines
}

interface AsideBranch {
  readonly ref: string
  readonly id: string
  readonly branch: string
}

class Merging {
  readonly #git: GitRunner
  readonly #state: RepositoryState
  readonly #identity: ReadonlyMap<string, string>
  readonly #guarded: Guarded
  readonly #consent: ReadonlySet<string>

  constructor(git: GitRunner, state: RepositoryState, options: MergeOptions, guarded: Guarded) {
    this.#git = git
    this.#state = state
    const settings = parseGitConfig(options.identity ?? '') ?? []
    this.#identity = new Map(settings.map(({ key, value }) => [key, value]))
    this.#guarded = guarded
    this.#consent = options.consent ?? new Set()
  }

  async merge({ ref, id, branch }: AsideBranch, records: readonly string[]): Promise<string> {
    const { refs, heads } = this.#state
    const [shown, word] = [printable(branch.slice('refs/heads/'.length), 200), shellWord(ref) ?? ref]
    const old = refs.get(branch)
    if (old === undefined)
      return `${shown} is not on the host any more; to make a branch of ${word}: git branch NAME ${word}`
    const on = [...heads].filter(([, head]) => head.branch === branch && head.isBare !== true)
    if (on.some(([record]) => !records.includes(record)))
      return `${shown} is checked out in another worktree; to merge there: git merge ${word}`
    if (on.some(([, { isBusy }]) => isBusy))
      return `${shown} waits: a rebase, merge, pick or bisect is unfinished on the host, or its index is locked`
    const commit = await this.#commit(old, id, shown)
    if (commit === undefined)
      return `${shown} has no commit in common with the sandbox's commits; to look at them: git log ${word}`
    if (typeof commit !== 'string')
      return `${shown} conflicts with the sandbox's commits in ${some(commit)}; to resolve it: git stash -u && git merge ${word}`
    const paths = await this.#needsConsent(old, id, commit, records)
    if (paths.length > 0)
      return `${shown} is not merged: that would change what the sandbox may not write (${some(paths)}); look at it: git diff ${old.slice(0, 10)} ${commit.slice(0, 10)}; to merge it yourself: git stash -u && git merge ${word}`
    if (
      commit !== old &&
      !(await this.#move(
        { name: branch, old, new: commit },
        on.map(([record]) => record),
      ))
    )
      return `${shown} moved meanwhile; fix: repeat the command`
    await runGit(this.#git, { script: 'git update-ref -d "$1" "$2"', args: [ref, id] })
    return `${shown} has the sandbox's commits now (${commit.slice(0, 10)})`
  }

  /** In the worktrees that have it checked out, with the index. */
  async #move(ref: RefMove, records: readonly string[]): Promise<boolean> {
    if (records.length === 0) return (await applyRefs(this.#git, {}, [ref], MESSAGE)).length === 0
    const { name: branch, old, new: commit } = ref
    const more = { message: MESSAGE, file: `index.pen-${crypto.randomUUID()}` }
    for (const [i, record] of records.entries()) {
      const move = { record, from: { branch, commit: i === 0 ? old : commit }, index: { old, new: commit } }
      if ((await applyWorktree(this.#git, {}, i === 0 ? { ...move, ref } : move, more)) !== true) return false
    }
    return true
  }

  /** A merge can bring what no side has: git follows renames. What the user agreed to is left out. */
  async #needsConsent(
    ours: string,
    theirs: string,
    merged: string,
    records: readonly string[],
  ): Promise<readonly string[]> {
    const needed = new Consent(this.#guarded, {
      refs: [theirs],
      stashes: [],
      current: currentCommit(this.#state, records),
      until: Date.now() + MAX_SYNC_MS,
    })
    const key = ({ path, after }: Change): string => `${after} ${path}`
    const result = await needed.toStep(ours, merged)
    const brought = [...(await needed.toNew(theirs)).values()].flat()
    if (!this.#consent.has(theirs)) return [...new Set([...brought, ...result].map(({ path }) => path))]
    const agreed = new Set([...brought, ...(await needed.toStep(ours, theirs))].map(key))
    return result.flatMap(change => (agreed.has(key(change)) ? [] : [change.path]))
  }

  /**
   * The merge, or the commit itself where one side has the other. The paths of conflicts otherwise. Undefined for unrelated
   * histories.
   */
  async #commit(
    ours: string,
    theirs: string,
    branch: string,
  ): Promise<string | readonly string[] | undefined> {
    const contains = async (older: string, newer: string): Promise<boolean> =>
      (await this.#git({ script: 'git merge-base --is-ancestor "$1" "$2"', args: [older, newer] })).code === 0
    if (await contains(theirs, ours)) return ours
    if (await contains(ours, theirs)) return theirs
    if ((await this.#git({ script: 'git merge-base "$1" "$2"', args: [ours, theirs] })).code === 1)
      return undefined
    const merged = await this.#git({ script: MERGE, args: [ours, theirs] })
    const [tree = '', ...paths] = fields(merged.stdout)
    if (merged.code === 1) return paths
    if (merged.code !== 0) await runGit(() => Promise.resolve(merged), { script: MERGE })
    const who = ['user.name', 'user.email'].map(key => this.#identity.get(key))
    const args = [
      ours,
      theirs,
      `Merge the sandbox's ${branch}`,
      tree,
      who[0] ?? 'pen',
      who[1] ?? 'pen@localhost',
    ]
    return (await runGit(this.#git, { script: COMMIT, args })).toString().trim()
  }
}

/** Paths are bytes in latin1. */
const some = (paths: readonly string[]): string => {
  const shown = paths.slice(0, MAX_PATHS).map(path => printable(pathText(path), 200))
  return paths.length > MAX_PATHS
    ? `${shown.join(', ')} and ${paths.length - MAX_PATHS} more`
    : shown.join(', ')
}

/**
 * Merges commits of a sandbox that were put aside, because the branch moved on the host too. `git merge` would refuse: the
 * working tree is shared, so the files of the sandbox's commits are in it already. Here the branch and the index move, and
 * the working tree stays as it is.
 */
import { printable, shellWord } from '../base/printable.ts'
import { parseGitConfig } from '../survey/git/config.ts'
import { applyIndex, applyRefs } from './apply-sync.ts'
import { fields, type GitRunner, runGit } from './git-runner.ts'
import { HostGit } from './host-git.ts'
import { type RepositoryState, readState } from './state.ts'
import type { SyncAllOptions } from './sync-all.ts'

const LIST = `git for-each-ref --format='%(objectname) %(refname)' "$1"`
/** Exit code 1: conflicts. Their paths follow the id of the tree, and end with an empty field. */
const MERGE = 'git merge-tree --write-tree -z --name-only --no-messages "$1" "$2"'
const COMMIT = `git -c user.useConfigOnly=true var GIT_AUTHOR_IDENT >/dev/null 2>&1 || {
    GIT_AUTHOR_NAME=$5 GIT_AUTHOR_EMAIL=$6; export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL; }
  git commit-tree -p "$1" -p "$2" -m "$3" "$4"`
const MESSAGE = 'pen: merged from the sandbox'
/** An older commit that was put aside under the same name. */
const BACKUP = /-[0-9a-f]{10}$/
const MAX_PATHS = 5

export interface MergeOptions extends Pick<SyncAllOptions, 'git' | 'records' | 'world'> {
  /** Settings of git with the user's name. */
  readonly identity: string | undefined
  readonly empty: string
}

/** Returns lines for the user. */
export async function mergeAside(options: MergeOptions): Promise<readonly string[]> {
  const { git, records, world } = options
  using host = new HostGit(git.path, options.empty)
  const prefix = `refs/pen/${world.sandbox.id}/heads/`
  const lines: string[] = []
  for (const { path } of [git, ...git.submodules]) {
    const below = path === git.path ? undefined : path.slice(git.path.length + 1)
    const run: GitRunner = call => host.run({ ...(below !== undefined && { gitDir: below }), ...call })
    const listed = (await runGit(run, { script: LIST, args: [prefix] })).toString().split('\n').slice(0, -1)
    for (const line of listed) {
      const [id = '', ref = ''] = line.split(' ')
      const merging = new Merging(run, await readState(host.run, below), options.identity)
      lines.push(`git: ${await merging.merge(ref, prefix, id, below === undefined ? records : ['.'])}`)
    }
  }
  return lines
}

class Merging {
  readonly #git: GitRunner
  readonly #state: RepositoryState
  readonly #identity: ReadonlyMap<string, string>

  constructor(git: GitRunner, state: RepositoryState, identity: string | undefined) {
    this.#git = git
    this.#state = state
    this.#identity = new Map((parseGitConfig(identity ?? '') ?? []).map(({ key, value }) => [key, value]))
  }

  async merge(ref: string, prefix: string, id: string, records: readonly string[]): Promise<string> {
    const { refs, heads } = this.#state
    const rest = ref.slice(prefix.length)
    const short = refs.has(`refs/heads/${rest}`) ? rest : rest.replace(BACKUP, '')
    const branch = `refs/heads/${short}`
    const [shown, word] = [printable(short, 200), shellWord(ref) ?? ref]
    const old = refs.get(branch)
    if (old === undefined)
      return `${shown} is not on the host any more; to make a branch of ${word}: git branch NAME ${word}`
    const on = [...heads].filter(([, head]) => head.branch === branch && head.isBare !== true)
    if (on.some(([record]) => !records.includes(record)))
      return `${shown} is checked out in another worktree; to merge there: git merge ${word}`
    if (on.some(([, { isBusy }]) => isBusy))
      return `${shown} waits: a rebase, merge, pick or bisect is unfinished on the host, or its index is locked`
    const commit = await this.#commit(old, id, shown)
    if (typeof commit !== 'string')
      return `${shown} conflicts with the sandbox's commits in ${conflicts(commit)}; to resolve it: git stash -u && git merge ${word}`
    const move = { name: branch, old, new: commit }
    if (commit !== old && (await applyRefs(this.#git, {}, [move], MESSAGE)).length > 0)
      return `${shown} moved meanwhile; fix: repeat the command`
    for (const [record] of on) await applyIndex(this.#git, {}, { record, branch, old, new: commit })
    await runGit(this.#git, { script: 'git update-ref -d "$1" "$2"', args: [ref, id] })
    return `${shown} has the sandbox's commits now (${commit.slice(0, 10)})`
  }

  /** The merge, or the commit itself where one side has the other. The paths of conflicts otherwise. */
  async #commit(ours: string, theirs: string, branch: string): Promise<string | readonly string[]> {
    const contains = async (older: string, newer: string): Promise<boolean> =>
      (await this.#git({ script: 'git merge-base --is-ancestor "$1" "$2"', args: [older, newer] })).code === 0
    if (await contains(theirs, ours)) return ours
    if (await contains(ours, theirs)) return theirs
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

const conflicts = (paths: readonly string[]): string => {
  const shown = paths.slice(0, MAX_PATHS).map(path => printable(Buffer.from(path, 'latin1').toString(), 200))
  return paths.length > MAX_PATHS
    ? `${shown.join(', ')} and ${paths.length - MAX_PATHS} more`
    : shown.join(', ')
}

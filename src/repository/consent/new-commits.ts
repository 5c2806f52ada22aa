/** Commits that the host does not have on a ref of its own, and what each of them changes. Run on the host, after the import. */

import { type At, type GitRunner, runGit } from '../git/git-runner.ts'
import { type Change, parseChange } from '../sync/changed-paths.ts'

/**
 * What the user has: refs and HEADs. Below `refs/pen` is what waits. A stash is not history: see `Consent`.
 * Bounded time: a few objects can name more paths than a machine can list.
 */
const OF_HOST = `--exclude='refs/pen/*' --exclude=refs/stash --all`
const NEW = `ulimit -t 60; exec git rev-list --topo-order --reverse --parents --ignore-missing --stdin --not ${OF_HOST} --`
const CHANGES =
  'ulimit -t 60; exec git diff-tree --stdin --always --root -r -z --raw --no-renames --no-abbrev --ignore-submodules=none'
const HAS = `git cat-file -e "$1^{commit}" && new=$(git rev-list -n 1 "$1" --not ${OF_HOST} --) && [ -z "$new" ]`
const PEELED = `git cat-file --batch-check='%(objecttype) %(objectname)'`

/** Parents by commit. Each commit comes after its parents. */
export async function newCommits(
  git: GitRunner,
  at: At,
  tips: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const out = new Map<string, readonly string[]>()
  const input = tips.map(tip => `${tip}\n`).join('')
  for (const line of (await runGit(git, { script: NEW, input, ...at })).toString('latin1').split('\n')) {
    const [id = '', ...parents] = line.split(' ')
    if (id !== '') out.set(id, parents)
  }
  return out
}

/** Whether the commit is in the history of the host's own refs. */
export async function hasCommit(git: GitRunner, at: At, id: string): Promise<boolean> {
  return (await git({ script: HAS, args: [id], ...at })).code === 0
}

export interface Peeled {
  readonly type: string
  readonly id: string
}

/** A tag may name a file, a tree or another tag. */
export async function peel(
  git: GitRunner,
  at: At,
  tips: readonly string[],
): Promise<ReadonlyMap<string, Peeled>> {
  const input = tips.map(tip => `${tip}^{}\n`).join('')
  const lines = (await runGit(git, { script: PEELED, input, ...at })).toString('latin1').split('\n')
  return new Map(
    tips.map((tip, i) => {
      const [type = '', id = ''] = (lines[i] ?? '').split(' ')
      return [tip, { type, id }]
    }),
  )
}

export interface Pair {
  readonly commit: string
  /** Undefined: the commit is a first one, and all of it is new. */
  readonly parent: string | undefined
}

/** Calls `see` for each difference. `see` may throw: then git is ended. */
export async function seeChanges(
  git: GitRunner,
  at: At,
  pairs: readonly Pair[],
  see: (pair: Pair, change: Change) => void,
): Promise<void> {
  const input = pairs.map(({ commit, parent }) => `${commit}${parent === undefined ? '' : ` ${parent}`}\n`)
  // For each line of the input: the commit, then `:META` and a path for each difference.
  let next = 0
  let meta: string | undefined
  const onField = (field: string): void => {
    const pair = pairs[next - 1]
    if (meta !== undefined && pair !== undefined) see(pair, parseChange(meta, field))
    if (meta !== undefined) meta = undefined
    else if (field.startsWith(':')) meta = field
    else if (field === pairs[next]?.commit) next++
    else throw new Error('git lists other commits than those that it was asked for')
  }
  await runGit(git, { script: CHANGES, input: input.join(''), onOutput: byField(onField), ...at })
  if (next !== pairs.length) throw new Error('git did not list the changes of each commit')
}

/** The files of a commit, as mode, id and path. */
export async function seeFiles(
  git: GitRunner,
  at: At,
  commit: string,
  see: (path: string, entry: string) => void,
): Promise<void> {
  const script = 'git ls-tree -r -z --full-tree "$1"'
  // `MODE TYPE ID<tab>PATH`
  const onField = (field: string): void => {
    const tab = field.indexOf('\t')
    const [mode = '', , id = ''] = field.slice(0, tab).split(' ')
    see(field.slice(tab + 1), `${mode} ${id}`)
  }
  await runGit(git, { script, args: [commit], onOutput: byField(onField), ...at })
}

/** Splits output at each NUL. In latin1: a path is bytes. */
function byField(onField: (field: string) => void): (chunk: Buffer) => void {
  let rest = ''
  return chunk => {
    const parts = (rest + chunk.toString('latin1')).split('\0')
    rest = parts.pop() ?? ''
    for (const part of parts) onField(part)
  }
}

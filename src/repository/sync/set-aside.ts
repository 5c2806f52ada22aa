/** Refs below `refs/pen/`: what cannot move to its own name on the host, and what waits for consent. Nothing there is lost. */
import { peel } from '../consent/new-commits.ts'
import { type At, type GitRunner, runGit } from '../git/git-runner.ts'
import type { Aside, Refused } from './plan-sync.ts'

/** In the name of a ref that had to make room. */
export const OLDER = /\/older\/[0-9a-f]{32}\//

const LIST = `git for-each-ref --format='%(objectname) %(refname)' "$1"`
const SET = `if [ -n "$4" ] && [ -n "$5" ] && ! git merge-base --is-ancestor "$4" "$3"; then
    git update-ref -m "$1" "$5" "$4" "" || exit
  fi
  git update-ref -m "$1" "$2" "$3" "$4" || git update-ref -m "$1" "$6" "$3" ""`

export interface AsideRefs {
  /** Below `refs/pen/`. */
  readonly below: string
  readonly refs: readonly Pick<Aside, 'name' | 'id'>[]
  readonly message: string
  /** Called before each new ref. It may throw. */
  readonly onNew: () => void
}

/**
 * What a ref had before, and is not in the new history, goes to `older`. So does a commit for which git cannot have the
 * ref. The names there cannot be guessed: a ref of the sandbox must not be in their way.
 */
export async function setAside(
  git: GitRunner,
  at: At,
  { below, refs, message, onNew }: AsideRefs,
): Promise<void> {
  if (refs.length === 0) return
  const [top = ''] = below.split('/')
  const text = (await runGit(git, { script: LIST, args: [`refs/pen/${top}`], ...at })).toString()
  const lines = text.split('\n').map(line => line.split(' '))
  // Another sandbox, or an earlier run, may have put other commits there.
  const now = new Map(lines.map(([id = '', ref = '']) => [ref, id]))
  const older = new Set(
    lines.flatMap(([id, ref = '']) => (OLDER.test(ref) ? [`${id} ${ref.replace(OLDER, '/')}`] : [])),
  )
  for (const { name, id } of refs) {
    const ref = `refs/pen/${below}/${name.slice('refs/'.length)}`
    const old = now.get(ref)
    if (old === id || (old === undefined && older.has(`${id} ${ref}`))) continue
    onNew()
    const spare = (): string =>
      `refs/pen/${top}/older/${crypto.randomUUID().replaceAll('-', '')}${ref.slice(`refs/pen/${top}`.length)}`
    const args = [message, ref, id, old ?? '', older.has(`${old} ${ref}`) ? '' : spare(), spare()]
    await runGit(git, { script: SET, args, ...at })
  }
}

/** A sandbox can write any id into a ref. git takes no branch that names a file or a tree. */
export async function commitsIn(
  git: GitRunner,
  at: At,
  aside: readonly Aside[],
): Promise<{ readonly commits: readonly Aside[]; readonly others: readonly Refused[] }> {
  const branches = aside.filter(({ name }) => name.startsWith('refs/heads/'))
  const ids = branches.map(({ id }) => id)
  const types = ids.length === 0 ? undefined : await peel(git, at, ids)
  const odd = branches.filter(({ id }) => types?.get(id)?.type !== 'commit')
  return {
    commits: aside.filter(one => !odd.includes(one)),
    others: odd.map(({ name }) => ({ name, why: 'it names no commit', fix: 'delete it inside' })),
  }
}

export async function withWorktrees(
  git: GitRunner,
  at: At,
  aside: readonly Aside[],
): Promise<readonly Aside[]> {
  if (!aside.some(({ reason }) => reason === 'checked-out')) return aside
  const text = (await runGit(git, { script: 'git worktree list --porcelain', ...at })).toString()
  const places = new Map(
    [...text.matchAll(/^worktree (.*)\nHEAD .*\nbranch (.*)$/gm)].map(([, path, branch]) => [branch, path]),
  )
  return aside.map(one => ({ ...one, worktree: places.get(one.name) }))
}

/** `arrived` waited for consent, and is where it belongs now. `below` is that of `setAside`. */
export async function dropAside(
  git: GitRunner,
  at: At,
  below: string,
  arrived: readonly string[],
): Promise<void> {
  for (const name of arrived) {
    const args = [`refs/pen/${below}/${name.slice('refs/'.length)}`]
    await git({ script: 'git update-ref -d "$1"', args, ...at })
  }
}

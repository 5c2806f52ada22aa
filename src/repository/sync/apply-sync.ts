/** Carries out a sync plan on one repository: refs, HEAD, index and stashes. */
import { type At, type GitRunner, recordAt, runGit } from '../git/git-runner.ts'
import type { Agreement } from './agreement.ts'
import type { RefMove, SyncPlan, WorktreeMove } from './plan-sync.ts'
import { prepareIndex } from './prepare-index.ts'

const UPDATE_REFS = 'git update-ref -z --stdin --create-reflog -m "$1"'

/** Nothing moved. The user switches, stages or commits at this moment. */
const LATER = 75
/** git refused the ref. HEAD and index moved, if HEAD went elsewhere. */
const REFUSED = 76
/**
 * pen holds git's lock of the index while a worktree changes. `git commit` of the user reads HEAD, then the index, and takes
 * the lock last. With a new HEAD and an old index it would undo the commits that the branch got. So the index changes first:
 * a commit from an old HEAD fails, because its branch has moved. A terminal's Ctrl-C, or the end of pen, does not stop it
 * halfway.
 *
 * git compares a file with its entry by content, when the file is as new as the index. Only that shows a change within the
 * second of the last look. git here does not see the working tree, so the new index has the time of the old one.
 *
 * 1, 2: HEAD's branch and commit, or empty. 3: the message. 4: where HEAD goes, or empty. 5: the new index, or empty. 6: the
 * identity of the old one.
 */
const MOVE = `trap '' INT TERM HUP
index=$GIT_DIR/index; lock=$index.lock; new=\${5:+$GIT_DIR/$5}; swapped=; tries=20; code=${LATER}
until (set -C; : >"$lock") 2>/dev/null; do
  tries=$((tries - 1)); [ $tries -gt 0 ] || break; sleep 0.1
done
swap() {
  [ -n "$new" ] || return 0
  [ ! -e "$index" ] || { touch -r "$index" "$new" && { ln "$index" "$new.old" || cp -p "$index" "$new.old"; }; } || return
  mv -f "$new" "$index" && swapped=yes
}
swap_back() { [ -z "$swapped" ] || if [ -e "$new.old" ]; then mv -f "$new.old" "$index"; else rm -f "$index"; fi; }
if [ $tries -gt 0 ]; then
  [ -z "$new" ] || rm -f "$new.old"
  if [ "$(git symbolic-ref -q HEAD)" = "$1" ] && [ "$(git rev-parse -q --verify HEAD)" = "$2" ] &&
    { [ -z "$new" ] || [ "$(stat -c '%i %s %z' "$index" 2>/dev/null)" = "$6" ]; }; then
    code=1
    swap && case $4 in
      '') code=0 ;;
      refs/*) git symbolic-ref -m "$3" HEAD "$4" && code=0 ;;
      *) git update-ref --no-deref -m "$3" HEAD "$4" \${2:+"$2"} && code=0 ;;
    esac
    [ $code = 0 ] || swap_back
    if [ $code = 0 ] && ! git update-ref -z --stdin --create-reflog -m "$3"; then
      code=${REFUSED}
      [ -n "$4" ] || swap_back
    fi
  fi
  [ -z "$new" ] || rm -f "$new.old"
  rm -f "$lock"
fi
[ -z "$new" ] || rm -f "$new"
exit $code`
/** The user goes on while the index is made. */
const MAX_TRIES = 3

/** All refs move together. When git refuses that, each moves on its own. Returns those that git refused. */
export async function applyRefs(
  git: GitRunner,
  at: At,
  moves: readonly RefMove[],
  message: string,
): Promise<readonly RefMove[]> {
  const call = (some: readonly RefMove[]) =>
    git({ script: UPDATE_REFS, args: [message], input: some.map(refLine).join(''), ...at })
  if (moves.length === 0 || (await call(moves)).code === 0) return []
  const failed: RefMove[] = []
  for (const move of moves) if ((await call([move])).code !== 0) failed.push(move)
  return failed
}

/** An old value of zeros says that the ref must not exist. A symbolic ref is not followed. */
const refLine = ({ name, old, new: id }: RefMove): string =>
  `option no-deref\0update ${name}\0${id}\0${old ?? '0'.repeat(id.length)}\0`

/** False: nothing moved, and a later sync tries again. `refused`: git refused the ref, and what does not need it moved. */
export async function applyWorktree(
  git: GitRunner,
  at: At,
  { record, from, ref, head, index }: WorktreeMove,
  { message, file }: { readonly message: string; readonly file: string },
): Promise<boolean | 'refused'> {
  const place = recordAt(at, record)
  const input = ref === undefined ? '' : refLine(ref)
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const prepared = index === undefined ? undefined : await prepareIndex(git, place, index, file)
    const args = [
      ...[from.branch ?? '', from.commit ?? '', message, head?.branch ?? head?.commit ?? ''],
      ...[prepared?.file ?? '', prepared?.identity ?? ''],
    ]
    const answer = await git({ script: MOVE, args, input, ...place })
    if (answer.code === REFUSED) return 'refused'
    if (answer.code === LATER) continue
    await runGit(() => Promise.resolve(answer), { script: MOVE })
    return true
  }
  return false
}

/** With the text that `git stash push` gave it. */
const STORE = `text=$(git show -s --format=%s "$2" | cut -c 1-200)
git update-ref --create-reflog -m "$1: $text" refs/stash "$2"`

/** git's own `stash store` needs a working tree. */
async function storeStash(git: GitRunner, at: At, id: string, message: string): Promise<void> {
  await runGit(git, { script: STORE, args: [message, id], ...at })
}

export interface AppliedPlan {
  readonly moved: readonly RefMove[]
  /** git refused them. */
  readonly failed: readonly RefMove[]
  /** HEAD or the index changed at this moment. The same sync can go on when it is repeated. */
  readonly isLate: boolean
}

/** Refs that are checked out move with HEAD and index of their worktree. What was applied is agreed. */
export async function applyPlan(
  git: GitRunner,
  at: At,
  plan: SyncPlan,
  { agreement, ...more }: { readonly message: string; readonly file: string; readonly agreement: Agreement },
): Promise<AppliedPlan> {
  const withHead = new Set(plan.worktrees.map(({ ref }) => ref))
  const others = plan.refs.filter(move => !withHead.has(move))
  const failed = [...(await applyRefs(git, at, others, more.message))]
  const moved = others.filter(move => !failed.includes(move))
  agreement.addApplied({ refs: moved })
  let isLate = false
  for (const move of plan.worktrees) {
    const { ref, head } = move
    const isStuck = head?.branch !== undefined && failed.some(({ name }) => name === head.branch)
    const done = !isStuck && (await applyWorktree(git, at, move, more))
    isLate ||= done === false
    if (done === false) continue
    const refs = ref === undefined ? [] : [ref]
    if (done === 'refused') failed.push(...refs)
    else moved.push(...refs)
    agreement.addApplied({ refs: done === true ? refs : [], worktrees: [move] })
  }
  for (const id of plan.stashes) {
    await storeStash(git, at, id, more.message)
    agreement.addApplied({ stashes: [id] })
  }
  return { moved, failed, isLate }
}

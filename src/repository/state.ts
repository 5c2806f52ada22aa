/** What git says of a repository: its refs, and HEAD of each worktree. The same commands run on the host and in the git box. */
import { OBJECT_ID } from './fold-refs.ts'
import { type GitRunner, runGit } from './git-runner.ts'

/** HEAD of one worktree. */
export interface Head {
  /** The branch, also one without a commit. Undefined: detached. */
  readonly branch: string | undefined
  /** Undefined on a branch without a commit. */
  readonly commit: string | undefined
  /** A rebase, merge, pick, revert or bisect is unfinished, or a git command works on the index. */
  readonly isBusy: boolean
  readonly isOpen: boolean
  /** It has no working tree: its HEAD holds no branch. */
  readonly isBare?: boolean
}

export interface RepositoryState {
  /** By full name: branches, tags, notes, remote-tracking refs. */
  readonly refs: ReadonlyMap<string, string>
  /** By record: `.` for the main worktree, `worktrees/NAME` for a linked one. */
  readonly heads: ReadonlyMap<string, Head>
  /** The commits of stashes, newest first. */
  readonly stashes: readonly string[]
  /** The ids of git-lfs objects, if they were asked for. */
  readonly largeFiles: readonly string[]
}

/** One line per fact. Names come last, because a ref name may contain any byte above the space. */
const SCRIPT = `
git for-each-ref --format='%(if)%(symref)%(then)symbolic%(else)ref %(objectname) %(refname)%(end)' refs/heads refs/tags refs/notes refs/remotes || exit 3
git rev-parse -q --verify refs/stash >/dev/null && git log -g -n 1000 --format='stash %H' refs/stash --
[ "$1" = with-large-files ] && (cd "$GIT_DIR/lfs/objects" 2>/dev/null && find . -type f -name '????????????????????????????????????????????????????????????????' | sed 's/^/large /')
top=$GIT_DIR
for record in . $(cd "$top" && ls -d worktrees/* 2>/dev/null); do
  GIT_DIR=$top/$record; export GIT_DIR
  [ -e "$GIT_DIR/HEAD" ] || continue
  open=-
  for file in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG sequencer; do
    [ -e "$GIT_DIR/$file" ] && open=open
  done
  [ $open = - ] && [ $record = . ] && [ "$(git config --type=bool core.bare)" = true ] && open=bare
  [ $open = - ] && [ -e "$GIT_DIR/index.lock" ] && open=locked
  echo "head $open $(git rev-parse -q --verify 'HEAD^{commit}' || echo -) $(git symbolic-ref -q HEAD || echo -) $record"
done
exit 0`

/** `./ab/cd/abcd…` */
const LARGE = /^\.\/[0-9a-f]{2}\/[0-9a-f]{2}\/([0-9a-f]{64})$/
const RECORD = /^(?:\.|worktrees\/[A-Za-z0-9_][A-Za-z0-9._-]*)$/
/** Names that git itself accepts are shorter: a file name has at most 255 bytes, and a path 4,096. */
const MAX_NAME = 1024

/** Lines that are not of this form are ignored: in a hostile repository they cannot mean anything else. */
export async function readState(
  git: GitRunner,
  gitDir?: string,
  large: 'with-large-files' | 'refs-alone' = 'refs-alone',
): Promise<RepositoryState> {
  const refs = new Map<string, string>()
  const heads = new Map<string, Head>()
  const stashes: string[] = []
  const largeFiles: string[] = []
  const output = await runGit(git, {
    script: SCRIPT,
    args: [large],
    timeoutMs: 15_000,
    ...(gitDir !== undefined && { gitDir }),
  })
  for (const line of output.toString('utf8').split('\n')) {
    const [kind, ...words] = line.split(' ')
    if (kind === 'ref') {
      const [id = '', name = ''] = words
      if (OBJECT_ID.test(id) && name.length <= MAX_NAME && words.length === 2) refs.set(name, id)
    } else if (kind === 'stash') {
      const [id = ''] = words
      if (OBJECT_ID.test(id)) stashes.push(id)
    } else if (kind === 'large') {
      const [, id = ''] = LARGE.exec(words[0] ?? '') ?? []
      if (id !== '') largeFiles.push(id)
    } else if (kind === 'head') {
      const [open, commit = '', branch = '', record = ''] = words
      if (words.length !== 4 || !RECORD.test(record)) continue
      heads.set(record, {
        branch: branch.startsWith('refs/') ? branch : undefined,
        commit: OBJECT_ID.test(commit) ? commit : undefined,
        isBusy: open === 'open' || open === 'locked',
        isOpen: open === 'open',
        isBare: open === 'bare',
      })
    }
  }
  return { refs, heads, stashes, largeFiles }
}

export const sameHead = (a: Head | undefined, b: Head | undefined): boolean =>
  a?.branch === b?.branch && (a?.branch !== undefined || a?.commit === b?.commit)

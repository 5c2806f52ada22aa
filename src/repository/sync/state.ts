/** What git says of a repository: its refs, and HEAD of each worktree. The same commands run on the host and in the git box. */
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { OBJECT_ID } from '../copy/fold-refs.ts'
import { type At, type GitRunner, recordAt, runGit } from '../git/git-runner.ts'

/** HEAD of one worktree. */
export interface Head {
  /** The branch, also one without a commit. Undefined: detached. */
  readonly branch: string | undefined
  /** Undefined on a branch without a commit. */
  readonly commit: string | undefined
  /** A rebase, merge, pick, revert or bisect is unfinished, or a git command works on the index. */
  readonly isBusy: boolean
  readonly isOpen: boolean
  /** Of the files of an unfinished operation. */
  readonly operation?: string | undefined
  /** The branch that an unfinished rebase or bisect moves, or goes back to. */
  readonly returnsTo?: string | undefined
  /** It has no working tree: its HEAD holds no branch. */
  readonly isBare?: boolean
}

export interface RepositoryState {
  /** By full name: branches, tags, notes, remote-tracking refs. */
  readonly refs: ReadonlyMap<string, string>
  /** Refs of tools, such as `refs/original`, if they were asked for. They do not cross. */
  readonly others: ReadonlyMap<string, string>
  /** By record: `.` for the main worktree, `worktrees/NAME` for a linked one. */
  readonly heads: ReadonlyMap<string, Head>
  /** The commits of stashes, newest first. */
  readonly stashes: readonly string[]
  /** The ids of git-lfs objects, if they were asked for. */
  readonly largeFiles: readonly string[]
  /** There is more, which pen cannot read. */
  readonly isInPart: boolean
}

/** The files of an unfinished operation in a worktree's directory. */
const OPERATION = 'rebase-merge rebase-apply sequencer MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG'
const DIGEST = `cd "$GIT_DIR" && find ${OPERATION} -type f 2>/dev/null | LC_ALL=C sort | while read -r file; do cat "$file"; done | sha256sum | cut -c 1-64`
/** Ends an operation that the sandbox has only as a copy of the host's. */
const FORGET = `[ "$(${DIGEST})" != "$1" ] || (cd "$GIT_DIR" && rm -rf ${OPERATION} BISECT_* MERGE_MODE MERGE_MSG AUTO_MERGE REBASE_HEAD)`

/** git would wait for it without end, and pen with it. */
export const REFUSE_PIPES = `if find "$GIT_DIR" -type p | grep -q .; then echo 'the git directory has a named pipe' >&2; exit 3; fi`

/** One line per fact. Names come last, because a ref name may contain any byte above the space. */
const SCRIPT = `
if [ "$1" = all ]; then ${REFUSE_PIPES}; fi
git for-each-ref --format='%(if)%(symref)%(then)symbolic%(else)ref %(objectname) %(refname)%(end)' refs/heads refs/tags refs/notes refs/remotes || exit 3
git rev-parse -q --verify refs/stash | sed 's/^/stash /'
git rev-parse -q --verify refs/stash >/dev/null && { git rev-list -g -n 1000 refs/stash -- || echo unknown; } | sed 's/^/stash /'
[ "$1" = all ] && git for-each-ref --format='other %(objectname) %(refname)' | grep -v -E ' refs/((heads|tags|notes|remotes|pen|bisect|rewritten|worktree|prefetch)/|stash$)'
[ "$1" = all ] && (cd "$GIT_DIR/lfs/objects" 2>/dev/null && find . -type f -name '????????????????????????????????????????????????????????????????' | sed 's/^/large /')
top=$GIT_DIR
for path in "$top/." "$top"/worktrees/* "$top"/worktrees/.[!.]*; do
  record=\${path#"$top/"}
  GIT_DIR=$path; export GIT_DIR
  [ -e "$GIT_DIR/HEAD" ] || continue
  open=-
  for file in ${OPERATION}; do
    [ -e "$GIT_DIR/$file" ] && open=open
  done
  operation=-
  [ $open = open ] && operation=$(${DIGEST})
  [ $open = - ] && [ "$record" = . ] && [ "$(git config --type=bool core.bare)" = true ] && open=bare
  [ $open = - ] && [ -e "$GIT_DIR/index.lock" ] && open=locked
  back=-
  for file in rebase-merge/head-name rebase-apply/head-name BISECT_START; do
    [ -f "$GIT_DIR/$file" ] && read -r back <"$GIT_DIR/$file"
  done
  case $back in -|refs/*) ;; *) back=refs/heads/$back ;; esac
  case $back in *[[:space:]]*) back=- ;; esac
  echo "head $open $operation $(git rev-parse -q --verify 'HEAD^{commit}' || echo -) $(git symbolic-ref -q HEAD || echo -) $back $record"
done
exit 0`

/** `./ab/cd/abcd…` */
const LARGE = /^\.\/[0-9a-f]{2}\/[0-9a-f]{2}\/([0-9a-f]{64})$/
/** git makes the name from that of the directory, in any language. */
const RECORD = /^(?:\.|worktrees\/(?!\.\.?$)[^/\p{C}\ufffd]+)$/u
/** Names that git itself accepts are shorter: a file name has at most 255 bytes, and a path 4,096. */
const MAX_NAME = 1024

/** About 400,000 refs, whose lines take a second. pen's other work waits meanwhile. */
const MAX_ANSWER = 32 * 1024 * 1024

/** Of the sandbox's repository. What is not in the form of a fact stays in the sandbox. */
export const readState = (
  git: GitRunner,
  gitDir?: string,
  large: 'all' | 'refs-alone' = 'refs-alone',
): Promise<RepositoryState> => read(bounded(git), gitDir, large, () => undefined)

const bounded =
  (git: GitRunner): GitRunner =>
  async call => {
    const answer = await git(call)
    if (answer.stdout.length <= MAX_ANSWER) return answer
    return {
      code: 1,
      stdout: Buffer.alloc(0),
      stderr: 'the repository has too many refs for pen, or their names are too long',
    }
  }

/** Of the host's repository. A worktree that pen cannot read must not lose its branch. */
export const readHostState = (git: GitRunner, gitDir?: string): Promise<RepositoryState> =>
  read(git, gitDir, 'refs-alone', line => {
    throw new PenError('STATE', {
      what: `pen cannot read what git says of your repository: ${printable(line, 300)}`,
      hint: 'a worktree or a ref has a name with unusual characters: git worktree list, git for-each-ref',
    })
  })

async function read(
  git: GitRunner,
  gitDir: string | undefined,
  large: 'all' | 'refs-alone',
  onOdd: (line: string) => void,
): Promise<RepositoryState> {
  const refs = new Map<string, string>()
  const others = new Map<string, string>()
  const heads = new Map<string, Head>()
  const stashes = new Set<string>()
  let isInPart = false
  const largeFiles: string[] = []
  const output = await runGit(git, {
    script: SCRIPT,
    args: [large],
    timeoutMs: 15_000,
    ...(gitDir !== undefined && { gitDir }),
  })
  for (const line of output.toString('utf8').split('\n').slice(0, -1)) {
    const [kind, ...words] = line.split(' ')
    const [id = '', name = ''] = words
    const [open, operation = '', commit = '', branch = '', back = ''] = words
    const record = words.slice(5).join(' ')
    const [, largeId] = LARGE.exec(id) ?? []
    if (kind === 'ref' && OBJECT_ID.test(id) && name.length <= MAX_NAME && words.length === 2)
      refs.set(name, id)
    else if (kind === 'other' && OBJECT_ID.test(id)) others.set(name, id)
    else if (kind === 'stash' && OBJECT_ID.test(id)) stashes.add(id)
    else if (kind === 'stash') isInPart = true
    else if (kind === 'large' && largeId !== undefined) largeFiles.push(largeId)
    else if (kind === 'head' && RECORD.test(record))
      heads.set(record, {
        branch: branch.startsWith('refs/') ? branch : undefined,
        commit: OBJECT_ID.test(commit) ? commit : undefined,
        isBusy: open === 'open' || open === 'locked',
        isOpen: open === 'open',
        operation: open === 'open' && OBJECT_ID.test(operation) ? operation : undefined,
        returnsTo: open === 'open' && back.startsWith('refs/') ? back : undefined,
        isBare: open === 'bare',
      })
    else if (kind !== 'symbolic') {
      isInPart = true
      onOdd(line)
    }
  }
  return { refs, others, heads, stashes: [...stashes], largeFiles, isInPart }
}

/**
 * A copy of an operation of the host's is none of the sandbox's. `agreed` has those that both sides had. When the host's is
 * over, the sandbox forgets its copy: `git rebase --abort` there would reset the working tree.
 */
export async function withoutCopies(
  git: GitRunner,
  at: At,
  own: RepositoryState,
  theirs: RepositoryState,
  agreed: ReadonlyMap<string, string>,
): Promise<RepositoryState> {
  const heads = new Map(own.heads)
  for (const [record, head] of own.heads) {
    const there = theirs.heads.get(record)
    const { operation } = head
    if (operation === undefined || there === undefined) continue
    if (operation !== there.operation && operation !== agreed.get(record)) continue
    heads.set(record, { ...head, isOpen: false, isBusy: there.isOpen && head.isBusy, returnsTo: undefined })
    if (!there.isOpen) await git({ script: FORGET, args: [operation], ...recordAt(at, record) })
  }
  return { ...own, heads }
}

export const sameHead = (a: Head | undefined, b: Head | undefined): boolean =>
  a?.branch === b?.branch && (a?.branch !== undefined || a?.commit === b?.commit)

export const sameHeads = (a: RepositoryState, b: RepositoryState): boolean => {
  const shown = ({ heads }: RepositoryState): string =>
    JSON.stringify([...heads].map(([record, { branch, commit, isBusy }]) => [record, branch, commit, isBusy]))
  return shown(a) === shown(b)
}

const commits = ({ heads }: RepositoryState): string[] =>
  [...heads.values()].flatMap(({ commit }) => (commit === undefined ? [] : [commit]))

export const knownTo = (state: RepositoryState): ReadonlySet<string> =>
  new Set([...state.refs.values(), ...commits(state)])

/** What the host, or the sandbox, has checked out. */
export const currentCommit = ({ heads }: RepositoryState, records: readonly string[]): string | undefined =>
  records.map(record => heads.get(record)?.commit).find(commit => commit !== undefined)

/** A branch without a commit is compared with no files. */
const STAGED = `head=$(git rev-parse -q --verify 'HEAD^{commit}') || head=$(git hash-object -t tree /dev/null) || exit
git diff-index --cached --ignore-submodules=none "$head"`

/**
 * What the user staged before the start is staged on both sides. What git cannot tell may be staged. `theirs` is undefined
 * for worktrees that only the sandbox has.
 */
export async function hasStaged(
  own: GitRunner,
  theirs: GitRunner | undefined,
  at: At,
  records: readonly string[],
): Promise<boolean> {
  for (const record of records) {
    const call = { script: STAGED, ...recordAt(at, record) }
    const [here, there] = await Promise.all([own(call), theirs?.(call)])
    if (here.code !== 0 || (there !== undefined && there.code !== 0)) return true
    const known = new Set(there?.stdout.toString('latin1').split('\n'))
    const lines = here.stdout.toString('latin1').split('\n')
    if (lines.some(line => line !== '' && !known.has(line))) return true
  }
  return false
}

const MAX_OTHERS = 20

/** Refs of tools with objects that only the sandbox has: a new copy would lose them. */
export async function onlyInside(
  host: GitRunner,
  at: At,
  { others }: RepositoryState,
): Promise<readonly (readonly [string, string])[]> {
  if (others.size === 0) return []
  const call = { script: 'git cat-file --batch-check', input: `${[...others.values()].join('\n')}\n`, ...at }
  const answer = (await runGit(host, call)).toString()
  return [...others].filter(([, id]) => answer.includes(`${id} missing`)).slice(0, MAX_OTHERS)
}

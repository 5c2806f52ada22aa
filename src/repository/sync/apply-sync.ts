/** Carries out a sync plan on one repository: refs, HEAD, index and stashes. */

import { readCone } from '../../survey/git/sparse-cone.ts'
import { fields, type GitRunner, runGit } from '../git/git-runner.ts'
import type { HeadMove, IndexMove, RefMove } from './plan-sync.ts'

const UPDATE_REFS = 'git update-ref -z --stdin --create-reflog -m "$1"'
/** Its user may have moved HEAD since it was read. No branch and no commit are empty words. */
const IS_AT = `[ "$(git symbolic-ref -q HEAD)" = "$1" ] && [ "$(git rev-parse -q --verify HEAD)" = "$2" ]`
const ELSEWHERE = 75
const SET_BRANCH = `${IS_AT} || exit ${ELSEWHERE}; git symbolic-ref -m "$3" HEAD "$4"`
const DETACH = `${IS_AT} || exit ${ELSEWHERE}; git update-ref --no-deref -m "$3" HEAD "$4" \${2:+"$2"}`
const CHANGED =
  'ulimit -t 60; exec git diff-tree -r -z --raw --no-renames --no-abbrev --ignore-submodules=none "$1" "$2"'
/** With a letter for each entry: S is skip-worktree, a small letter is assume-unchanged. */
const ENTRIES = 'git ls-files -z --stage -v --full-name'
/**
 * git compares a file with its entry by content, when the file is as new as the index. Only that shows a change within the
 * second of the last look. git here does not see the working tree, so the index keeps its time, rounded down.
 */
const keepingTime = (command: string): string => `time=$(date -r "$GIT_DIR/index" +%s 2>/dev/null)
${command} || exit
[ -z "$time" ] || touch -c -m -d "@$time" "$GIT_DIR/index"`
const SET_ENTRIES = `${IS_AT} || exit 0; ${keepingTime('git update-index -z --index-info')}`
const SET_FLAG = keepingTime('git update-index -z "$1" --stdin')
const CONE = `[ "$(git config --type=bool core.sparseCheckout)" = true ] || exit 0
[ "$(git config --type=bool core.sparseCheckoutCone)" = true ] || exit 0
cat "$(git rev-parse --git-path info/sparse-checkout)"`

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

export interface At {
  readonly gitDir?: string
}

/** An old value of zeros says that the ref must not exist. A symbolic ref is not followed. */
const refLine = ({ name, old, new: id }: RefMove): string =>
  `option no-deref\0update ${name}\0${id}\0${old ?? '0'.repeat(id.length)}\0`

/** False when HEAD is not what it was any more. */
export async function applyHead(
  git: GitRunner,
  at: At,
  { record, old, head }: HeadMove,
  message: string,
): Promise<boolean> {
  const script = head.branch === undefined ? DETACH : SET_BRANCH
  const args = [old.branch ?? '', old.commit ?? '', message, head.branch ?? head.commit ?? '']
  const answer = await git({ script, args, ...recordAt(at, record) })
  if (answer.code === ELSEWHERE) return false
  await runGit(() => Promise.resolve(answer), { script })
  return true
}

/** git's own `stash store` needs a working tree. */
export async function storeStash(git: GitRunner, at: At, id: string, message: string): Promise<void> {
  await runGit(git, {
    script: 'git update-ref --create-reflog -m "$1" refs/stash "$2"',
    args: [message, id],
    ...at,
  })
}

/**
 * Moves index entries from one commit to another, where the entry is still that of the old commit. What the user staged, an
 * intent to add, and flags stay as they are. It does nothing when HEAD is not at the new commit, on the branch.
 */
export async function applyIndex(
  git: GitRunner,
  at: At,
  { record, branch = '', old, new: commit }: IndexMove,
): Promise<void> {
  const place = recordAt(at, record)
  const changes = await changedPaths(git, place, old, commit)
  if (changes.length === 0) return
  const entries = parseEntries(await runGit(git, { script: ENTRIES, ...place }))
  const isFollowed = ({ path, before }: Change): boolean => entries.get(path)?.value === before
  const removed = changes.filter(change => change.after === '' && isFollowed(change))
  const staying = new Set(entries.keys())
  for (const { path } of removed) staying.delete(path)
  const taken = directoriesOf(staying)
  const others = changes.filter(change => {
    const { path, before, after } = change
    if (before !== '') return after !== '' && isFollowed(change)
    // git would remove a staged file to make room for a directory of the same name, and the other way round.
    return !entries.has(path) && !taken.has(path) && !parentsOf(path).some(parent => staying.has(parent))
  })
  const moved = [...removed, ...others]
  const lines = moved.map(
    ({ path, after }) => `${after === '' ? `0 ${'0'.repeat(commit.length)}` : after}\t${path}\0`,
  )
  if (lines.length === 0) return
  await runGit(git, { script: SET_ENTRIES, args: [branch, commit], input: bytes(lines), ...place })
  const outside = await outsideSparse(git, place, moved)
  for (const [flag, test] of FLAGS) {
    const paths = moved.flatMap(({ path, after }) =>
      after !== '' && test(entries.get(path)?.letter ?? outside.get(path) ?? '') ? [`${path}\0`] : [],
    )
    if (paths.length > 0) await runGit(git, { script: SET_FLAG, args: [flag], input: bytes(paths), ...place })
  }
}

/** New paths that a sparse checkout leaves out, with their letter. Without it git would say that they were deleted. */
async function outsideSparse(
  git: GitRunner,
  at: At,
  moved: readonly Change[],
): Promise<ReadonlyMap<string, string>> {
  const added = moved.flatMap(({ path, before, after }) => (before === '' && after !== '' ? [path] : []))
  if (added.length === 0) return new Map()
  const hasPath = readCone((await runGit(git, { script: CONE, ...at })).toString('latin1'))
  return new Map(added.flatMap(path => (hasPath(path) ? [] : [[path, 'S'] as const])))
}

const FLAGS: readonly (readonly [string, (letter: string) => boolean])[] = [
  ['--skip-worktree', letter => letter.toUpperCase() === 'S'],
  ['--assume-unchanged', letter => /^[a-z]$/.test(letter)],
]

export interface Change {
  /** In latin1: the path is bytes. `pathText` makes it readable. */
  readonly path: string
  /** Mode and id; empty where there is no entry. */
  readonly before: string
  readonly after: string
}

/** `old` is undefined for the first commit. Fails when git cannot list the difference in bounded time. */
export async function changedPaths(
  git: GitRunner,
  at: At,
  old: string | undefined,
  commit: string,
): Promise<readonly Change[]> {
  const from = old ?? (commit.length === 40 ? EMPTY_TREE.sha1 : EMPTY_TREE.sha256)
  const list = fields(await runGit(git, { script: CHANGED, args: [from, commit], ...at }))
  const out: Change[] = []
  for (let i = 0; i + 1 < list.length; i += 2) out.push(parseChange(list[i] ?? '', list[i + 1] ?? ''))
  return out
}

/** `:OLDMODE NEWMODE OLDID NEWID STATUS` of git's raw difference. Fast: a sandbox can make millions of them. */
export function parseChange(meta: string, path: string): Change {
  const [oldMode, newMode, ids] = [meta.slice(1, 7), meta.slice(8, 14), meta.slice(15, -2)]
  const half = (ids.length - 1) / 2
  const entry = (mode: string, id: string): string => (mode === '000000' ? '' : `${mode} ${id}`)
  return { path, before: entry(oldMode, ids.slice(0, half)), after: entry(newMode, ids.slice(half + 1)) }
}

/** A path of git's, which is bytes in latin1, as text. */
export const pathText = (path: string): string =>
  /[\x80-\xff]/.test(path) ? Buffer.from(path, 'latin1').toString('utf8') : path

const EMPTY_TREE = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
}

interface IndexEntry {
  readonly letter: string
  readonly value: string
}

/** `LETTER MODE ID STAGE<tab>PATH`. An entry with a conflict equals no entry of a commit. */
function parseEntries(output: Buffer): ReadonlyMap<string, IndexEntry> {
  const out = new Map<string, IndexEntry>()
  for (const field of fields(output)) {
    const tab = field.indexOf('\t')
    const [letter = '', mode = '', id = '', stage = ''] = field.slice(0, tab).split(' ')
    out.set(field.slice(tab + 1), { letter, value: stage === '0' ? `${mode} ${id}` : 'conflict' })
  }
  return out
}

function directoriesOf(paths: Iterable<string>): ReadonlySet<string> {
  const out = new Set<string>()
  for (const path of paths) for (const parent of parentsOf(path)) out.add(parent)
  return out
}

/** The directories above a relative path. */
export function parentsOf(path: string): string[] {
  const out: string[] = []
  for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1))
    out.push(path.slice(0, slash))
  return out
}

const bytes = (lines: readonly string[]): Buffer => Buffer.from(lines.join(''), 'latin1')

/** The directory of a worktree's record. */
export const recordAt = ({ gitDir }: At, record: string): At => {
  const path = [gitDir, record === '.' ? undefined : record].filter(part => part !== undefined).join('/')
  return path === '' ? {} : { gitDir: path }
}

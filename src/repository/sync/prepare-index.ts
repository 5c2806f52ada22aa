/**
 * Makes an index for another commit, beside the index. Entries move where they are still those of the old commit. What the
 * user staged, an intent to add, and flags stay as they are.
 */
import { readCone } from '../../survey/git/sparse-cone.ts'
import { type At, fields, type GitRunner, runGit } from '../git/git-runner.ts'
import { type Change, changedPaths, parentsOf } from './changed-paths.ts'

/** Which index it is, then its entries. With a letter for each: S is skip-worktree, a small letter is assume-unchanged. */
const ENTRIES = `stat -c '%i %s %z' "$GIT_DIR/index" 2>/dev/null; printf '\\0'
git ls-files -z --stage -v --full-name`
const COPY = `new=$GIT_DIR/$1; rm -f "$new" && { [ ! -e "$GIT_DIR/index" ] || cp "$GIT_DIR/index" "$new"; } || exit
GIT_INDEX_FILE=$new git update-index -z --index-info`
const SET_FLAG = 'GIT_INDEX_FILE=$GIT_DIR/$1 git update-index -z "$2" --stdin'
const CONE = `[ "$(git config --type=bool core.sparseCheckout)" = true ] || exit 0
[ "$(git config --type=bool core.sparseCheckoutCone)" = true ] || exit 0
cat "$(git rev-parse --git-path info/sparse-checkout)"`

export interface PreparedIndex {
  /** Its name in the directory of the worktree. Empty: the index is right as it is. */
  readonly file: string
  /** Of the index that it was made from. Empty: there was none. */
  readonly identity: string
}

/** `file` is made, or made again. */
export async function prepareIndex(
  git: GitRunner,
  at: At,
  { old, new: commit }: { readonly old: string | undefined; readonly new: string },
  file: string,
): Promise<PreparedIndex> {
  const changes = await changedPaths(git, at, old, commit)
  const [identity = '', ...listed] = fields(await runGit(git, { script: ENTRIES, ...at }))
  const entries = parseEntries(listed)
  const moved = following(changes, entries)
  if (moved.length === 0) return { file: '', identity: identity.trim() }
  const lines = moved.map(
    ({ path, after }) => `${after === '' ? `0 ${'0'.repeat(commit.length)}` : after}\t${path}\0`,
  )
  await runGit(git, { script: COPY, args: [file], input: bytes(lines), ...at })
  const outside = await outsideSparse(git, at, moved)
  for (const [flag, test] of FLAGS) {
    const paths = moved.flatMap(({ path, after }) =>
      after !== '' && test(entries.get(path)?.letter ?? outside.get(path) ?? '') ? [`${path}\0`] : [],
    )
    if (paths.length > 0)
      await runGit(git, { script: SET_FLAG, args: [file, flag], input: bytes(paths), ...at })
  }
  return { file, identity: identity.trim() }
}

function following(changes: readonly Change[], entries: ReadonlyMap<string, IndexEntry>): readonly Change[] {
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
  return [...removed, ...others]
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

interface IndexEntry {
  readonly letter: string
  readonly value: string
}

/** `LETTER MODE ID STAGE<tab>PATH`. An entry with a conflict equals no entry of a commit. */
function parseEntries(listed: readonly string[]): ReadonlyMap<string, IndexEntry> {
  const out = new Map<string, IndexEntry>()
  for (const field of listed) {
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

const bytes = (lines: readonly string[]): Buffer => Buffer.from(lines.join(''), 'latin1')

/** What differs between two commits, as git lists it. Hostile on either side. */
import { type At, fields, type GitRunner, runGit } from '../git/git-runner.ts'

const CHANGED =
  'ulimit -t 60; exec git diff-tree -r -z --raw --no-renames --no-abbrev --ignore-submodules=none "$1" "$2"'

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

/** The directories above a relative path. */
export function parentsOf(path: string): string[] {
  const out: string[] = []
  for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1))
    out.push(path.slice(0, slash))
  return out
}
